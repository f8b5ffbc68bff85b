"""Packing of sequences into rows: nothing lost, nothing mixed."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import pack_rows

ROW_LENGTH = 24
CASES = [(1, 1), (2, 1), (64, 1), (64, 4), (60, 3), (96, 96)]
IDS = [f"{size}_in_{groups}" for size, groups in CASES]


def random_examples(size, seed=0, row_length=ROW_LENGTH):
    """Lists of tokens; every token is another number from 1."""
    lengths = np.random.default_rng(seed).integers(1, row_length + 1, size)
    tokens = np.arange(1, lengths.sum() + 1, dtype=np.int32)
    return [part.tolist() for part in np.split(tokens, np.cumsum(lengths)[:-1])]


def packed(examples, row_length=ROW_LENGTH, **options):
    tokens = tf.ragged.constant(examples, tf.int32, row_splits_dtype=tf.int64)
    features = pack_rows(tokens, row_length, **options)
    return {name: value.numpy() for name, value in features.items()}


def by_group(features, groups):
    """The rows of each group: pairs of token and segment arrays."""
    return list(
        zip(
            np.split(features["token_ids"], groups),
            np.split(features["segment_ids"], groups),
            strict=True,
        )
    )


def first_fit_decreasing(examples, row_length):
    """The numbers of the examples in each row, one example at a time."""
    rows, free = [], []
    longest_first = sorted(
        range(len(examples)), key=lambda i: -len(examples[i])
    )
    for example in longest_first:
        length = len(examples[example])
        fitting = [row for row, room in enumerate(free) if room >= length]
        if not fitting:
            fitting = [len(rows)]
            rows.append([])
            free.append(row_length)
        rows[fitting[0]].append(example)
        free[fitting[0]] -= length
    return rows


@pytest.mark.parametrize(("size", "groups"), CASES, ids=IDS)
def test_every_example_is_there_once_whole_and_in_order(size, groups):
    examples = random_examples(size)
    features = packed(examples, groups=groups)

    found = [
        tokens[segments == example + 1].tolist()
        for tokens, segments in by_group(features, groups)
        for example in range(size // groups)
    ]

    assert found == examples
    assert np.count_nonzero(features["token_ids"]) == sum(map(len, examples))


@pytest.mark.parametrize(("size", "groups"), CASES, ids=IDS)
def test_an_example_is_one_piece_of_one_row(size, groups):
    features = packed(random_examples(size), groups=groups)

    for _, segments in by_group(features, groups):
        starts = np.diff(segments, axis=1, prepend=0) != 0
        first_tokens = segments[starts & (segments > 0)]
        assert sorted(first_tokens) == list(range(1, size // groups + 1))


@pytest.mark.parametrize(("size", "groups"), CASES, ids=IDS)
def test_rows_are_those_of_first_fit_decreasing(size, groups):
    examples = random_examples(size)
    features = packed(examples, groups=groups)

    share = size // groups
    for group, (_, segments) in enumerate(by_group(features, groups)):
        expected = first_fit_decreasing(
            examples[group * share : (group + 1) * share], ROW_LENGTH
        )
        found = [list(dict.fromkeys(row[row > 0] - 1)) for row in segments]
        assert found[: len(expected)] == expected
        assert not any(found[len(expected) :])


def test_padding_follows_the_tokens_and_holds_the_pad_id():
    features = packed([[5, 5], [6, 6, 6], [7]], 4, pad_id=9)

    # [6 6 6] opens a row, [5 5] another, [7] fits behind the sixes.
    assert features["token_ids"].tolist() == [[6, 6, 6, 7], [5, 5, 9, 9]]
    assert features["segment_ids"].tolist() == [[2, 2, 2, 3], [1, 1, 0, 0]]


def test_lengths_are_those_of_the_examples():
    examples = random_examples(60)

    lengths = packed(examples, groups=3)["lengths"]

    assert lengths.tolist() == [len(example) for example in examples]
    assert lengths.dtype == np.int32


def test_a_group_packs_as_it_does_alone():
    examples = random_examples(60)

    together = by_group(packed(examples, groups=3), 3)
    alone = packed(examples[20:40])

    rows = len(alone["token_ids"])
    for kind, name in enumerate(("token_ids", "segment_ids")):
        np.testing.assert_array_equal(together[1][kind][:rows], alone[name])
        assert not together[1][kind][rows:].any()


def test_equal_lengths_keep_their_order():
    features = packed([[1], [2], [3], [4], [5]], 2)

    assert features["token_ids"].tolist() == [[1, 2], [3, 4], [5, 0]]


def test_packing_again_gives_the_same():
    examples = random_examples(64, seed=3)
    once, again = packed(examples), packed(examples)

    for name in once:
        np.testing.assert_array_equal(once[name], again[name])


@pytest.mark.parametrize(
    ("row_multiple", "rows"), [(1, 3), (2, 4), (4, 4), (5, 5)]
)
def test_rows_are_rounded_up_to_a_multiple(row_multiple, rows):
    features = packed([[1] * 4] * 3, 4, row_multiple=row_multiple)

    assert features["token_ids"].shape == (rows, 4)


def test_a_fixed_number_of_rows_makes_the_shape_static():
    tokens = tf.ragged.constant(random_examples(8), tf.int32)
    dataset = tf.data.Dataset.from_tensors(tokens).map(
        lambda t: pack_rows(t, ROW_LENGTH, groups=2, rows=5)
    )

    assert dataset.element_spec == {
        "token_ids": tf.TensorSpec([10, ROW_LENGTH], tf.int32),
        "segment_ids": tf.TensorSpec([10, ROW_LENGTH], tf.int32),
        "lengths": tf.TensorSpec([8], tf.int32),
    }
    assert next(iter(dataset))["token_ids"].shape == (10, ROW_LENGTH)


def test_only_the_row_number_is_unknown_otherwise():
    tokens = tf.ragged.constant(random_examples(8), tf.int32)
    dataset = tf.data.Dataset.from_tensors(tokens).map(
        lambda t: pack_rows(t, ROW_LENGTH)
    )

    spec = dataset.element_spec["segment_ids"]
    assert spec == tf.TensorSpec([None, ROW_LENGTH], tf.int32)


def test_a_batch_that_does_not_fit_says_how_many_rows_it_needs():
    # Two tokens each, no two in a row of three.
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        packed([[1, 1]] * 5, 3, rows=4, name="documents")

    message = caught.value.message
    assert "batch of `documents` to fit into rows=4 rows of 3" in message
    assert "5" in message.split("Rows needed:")[1]


@pytest.mark.parametrize("example", [[], [1] * 5], ids=["empty", "too_long"])
def test_an_example_of_a_bad_length_is_refused(example):
    with pytest.raises(tf.errors.InvalidArgumentError, match="1 to 4 tokens"):
        packed([[1], example], 4)


@pytest.mark.parametrize("option", ["groups", "row_multiple", "rows"])
def test_options_below_one_are_refused(option):
    with pytest.raises(InvalidInputError, match=f"{option}=0"):
        packed([[1]], **{option: 0})


def test_groups_must_divide_the_batch():
    with pytest.raises(InvalidInputError, match="groups=2, a batch of 3"):
        packed([[1]] * 3, groups=2)
