"""Streams mixed of several datasets."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import mixed_dataset, source_of_step
from tf_samtone.errors import InvalidInputError

WEIGHTS = {"web": 3.0, "code": 1.0}


def counting(offset, size=None):
    """A source whose batches are {"n": offset + step}."""

    def source(start_step):
        stop = 2**40 if size is None else offset + size
        return tf.data.Dataset.range(offset + start_step, stop).map(
            lambda n: {"n": n}
        )

    return source


def endless(start_step):
    return tf.data.Dataset.from_tensors(
        {"n": tf.constant(0, tf.int64)}
    ).repeat()


SOURCES = {"web": counting(0), "code": counting(10**6)}


def mixed(count, **options):
    dataset = mixed_dataset(SOURCES, WEIGHTS, **options)
    taken = itertools.islice(dataset.as_numpy_iterator(), count)
    return [int(batch["n"]) for batch in taken]


def test_every_source_gives_its_batches_in_order():
    numbers = mixed(200)
    web = [n for n in numbers if n < 10**6]
    code = [n - 10**6 for n in numbers if n >= 10**6]

    assert web == list(range(len(web)))
    assert code == list(range(len(code)))


def test_sources_are_drawn_with_their_weights():
    num_web = sum(n < 10**6 for n in mixed(4000))

    # Binomial with p = 3/4: standard deviation 27.4.
    assert abs(num_web - 3000) < 4 * 27.4


@pytest.mark.parametrize("start_step", [1, 50, 4095, 4096, 9000])
def test_a_start_step_continues_the_stream(start_step):
    whole = mixed(start_step + 30)

    assert mixed(30, start_step=start_step) == whole[start_step:]


def test_the_same_seed_gives_the_same_draws():
    assert mixed(50, seed=5) == mixed(50, seed=5)


@pytest.mark.parametrize("seed", [1, -1, 2**31, 2**40])
def test_another_seed_gives_other_draws(seed):
    assert mixed(50, seed=seed) != mixed(50, seed=0)


def test_the_order_of_a_dict_changes_nothing():
    turned = mixed_dataset(
        dict(reversed(SOURCES.items())), dict(reversed(WEIGHTS.items()))
    )
    numbers = [int(b["n"]) for b in turned.take(50).as_numpy_iterator()]

    assert numbers == mixed(50)


def test_a_list_of_sources_is_numbered():
    dataset = mixed_dataset([counting(0), counting(10**6)], [3, 1])
    numbers = [int(b["n"]) for b in dataset.take(50).as_numpy_iterator()]

    found = [source_of_step([3, 1], step) for step in range(50)]
    assert numbers == [10**6 * source + place for source, place in found]


def test_the_source_of_a_step_is_told_with_its_own_step():
    found = [source_of_step(WEIGHTS, step, seed=2) for step in (0, 7, 4100)]

    numbers = np.array(mixed(4101, seed=2))[[0, 7, 4100]]
    starts = {"web": 0, "code": 10**6}
    assert [starts[name] + place for name, place in found] == numbers.tolist()


def test_one_source_is_passed_through():
    dataset = mixed_dataset([counting(0)], [2.5], start_step=4)

    assert [int(b["n"]) for b in dataset.take(3)] == [4, 5, 6]


def test_the_stream_stops_when_a_source_has_no_more():
    dataset = mixed_dataset([counting(0, size=3), counting(10**6)], [1, 1])
    numbers = [int(batch["n"]) for batch in dataset]

    # The fourth draw of the first source finds nothing.
    assert [n for n in numbers if n < 10**6] == [0, 1, 2]
    assert source_of_step([1, 1], len(numbers)) == (0, 3)


def test_a_mix_of_endless_sources_is_endless():
    dataset = mixed_dataset([endless, endless], [1, 1])

    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY


@pytest.mark.parametrize(
    ("sources", "weights", "message"),
    [
        (SOURCES, {"web": 1}, r"\['code', 'web'\], weights \['web'\]"),
        (list(SOURCES.values()), [1], r"\[0, 1\], weights \[0\]"),
        (SOURCES, {"web": 1, "code": 0}, r"weights\['code'\]=0"),
        (SOURCES, {"web": 1, "code": float("nan")}, r"'code'\]=nan"),
        (SOURCES, {"web": 1, "code": "1"}, r"'code'\]='1'"),
        ([], [], "at least one source"),
        ([lambda step: [step]], [1], "Received: list"),
        (
            [counting(0), lambda step: tf.data.Dataset.range(3)],
            [1, 1],
            "int64 from source 1, {'n': 'int64'} from the first",
        ),
    ],
    ids=[
        "missing_weight",
        "fewer_weights",
        "zero",
        "nan",
        "text",
        "nothing",
        "no_dataset",
        "other_structure",
    ],
)
def test_bad_arguments_are_refused(sources, weights, message):
    with pytest.raises(InvalidInputError, match=message):
        mixed_dataset(sources, weights)


def test_a_negative_start_is_refused():
    with pytest.raises(InvalidInputError, match="start_step=-1"):
        mixed_dataset(SOURCES, WEIGHTS, start_step=-1)
