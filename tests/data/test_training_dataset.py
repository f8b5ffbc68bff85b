"""The training pipeline: contents, order and refusals."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import training_dataset
from tf_samtone.errors import InvalidInputError
from tf_samtone.text import fingerprint

QUERIES = [f"the cat number {i}" for i in range(23)]
DOCUMENTS = [f"a small dog and bird number {i}" for i in range(23)]
ROW_OF = {value: row for row, value in enumerate(fingerprint(QUERIES))}


@pytest.fixture
def build(query_preprocessor, document_preprocessor):
    def make(queries=QUERIES, documents=DOCUMENTS, **options):
        options = {"batch_size": 4, "epochs": 1, **options}
        return training_dataset(
            queries,
            documents,
            query_preprocessor=query_preprocessor,
            document_preprocessor=document_preprocessor,
            **options,
        )

    return make


def rows_of(dataset, batches=None):
    """Row numbers of each batch, found through the query ids."""
    taken = itertools.islice(dataset.as_numpy_iterator(), batches)
    return [[ROW_OF[i] for i in batch["query_ids"]] for batch in taken]


def test_element_spec_is_static(build):
    features = {
        "token_ids": tf.TensorSpec([4, 6], tf.int32),
        "padding_mask": tf.TensorSpec([4, 6], tf.int32),
    }
    wider = {
        name: tf.TensorSpec([4, 10], tf.int32)
        for name in ("token_ids", "padding_mask")
    }

    assert build().element_spec == {
        "queries": features,
        "documents": wider,
        "query_ids": tf.TensorSpec([4], tf.int64),
        "document_ids": tf.TensorSpec([4], tf.int64),
    }


@pytest.mark.parametrize("feature", ["token_ids", "padding_mask"])
def test_query_features_equal_the_preprocessor(
    build, query_preprocessor, feature
):
    batch = next(iter(build()))
    rows = [ROW_OF[i] for i in batch["query_ids"].numpy()]

    expected = query_preprocessor([QUERIES[row] for row in rows])
    np.testing.assert_array_equal(batch["queries"][feature], expected[feature])


@pytest.mark.parametrize("feature", ["token_ids", "padding_mask"])
def test_document_features_equal_the_preprocessor(
    build, document_preprocessor, feature
):
    batch = next(iter(build()))
    rows = [ROW_OF[i] for i in batch["query_ids"].numpy()]

    expected = document_preprocessor([DOCUMENTS[row] for row in rows])
    np.testing.assert_array_equal(
        batch["documents"][feature], expected[feature]
    )


def test_repeated_texts_keep_their_rows(build, document_preprocessor):
    documents = ["a cat", "the small dog", "a cat", "the engine"]

    batch = next(iter(build(QUERIES[:4], documents, shuffle=False)))

    expected = document_preprocessor(documents)["token_ids"]
    np.testing.assert_array_equal(batch["documents"]["token_ids"], expected)


def test_ids_are_the_fingerprints_of_the_texts(build):
    batch = next(iter(build()))
    rows = [ROW_OF[i] for i in batch["query_ids"].numpy()]

    np.testing.assert_array_equal(
        batch["document_ids"], fingerprint([DOCUMENTS[row] for row in rows])
    )


def test_an_epoch_has_full_batches_and_no_row_twice(build):
    batches = rows_of(build())

    assert [len(batch) for batch in batches] == [4] * 5
    assert len(set(itertools.chain(*batches))) == 20


def test_each_epoch_has_its_own_order_and_remainder(build):
    batches = rows_of(build(epochs=3))
    epochs = [list(itertools.chain(*batches[i : i + 5])) for i in (0, 5, 10)]

    assert len(batches) == 15
    assert len({tuple(epoch) for epoch in epochs}) == 3
    assert len({frozenset(epoch) for epoch in epochs}) == 3


def test_every_row_is_equally_likely_everywhere(build):
    batches = np.array(rows_of(build(batch_size=23, epochs=600)))

    first_rows = np.bincount(batches[:, 0], minlength=23)
    # Chi-square with 22 degrees of freedom: mean 22, 99.9 % below 48.3.
    assert ((first_rows - 600 / 23) ** 2 / (600 / 23)).sum() < 48.3


def test_iterating_again_starts_from_the_beginning(build):
    dataset = build(epochs=2)

    assert rows_of(dataset) == rows_of(dataset)


def test_the_same_seed_gives_the_same_batches(build):
    assert rows_of(build(seed=5)) == rows_of(build(seed=5))


@pytest.mark.parametrize("seed", [1, -1, 2**31, 2**40])
def test_another_seed_gives_another_order(build, seed):
    assert rows_of(build(seed=seed)) != rows_of(build(seed=0))


def test_the_dataset_is_endless_by_default(build):
    dataset = build(epochs=None)

    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert len(rows_of(dataset, batches=17)) == 17


def test_a_counted_dataset_knows_its_length(build):
    assert build(epochs=3).cardinality() == 15
    assert build(epochs=3, start_step=7).cardinality() == 8


@pytest.mark.parametrize("epochs", [3, None], ids=["counted", "endless"])
@pytest.mark.parametrize("start_step", [1, 5, 12])
def test_a_start_step_resumes_the_same_order(build, epochs, start_step):
    whole = rows_of(build(epochs=epochs), batches=15)

    rest = rows_of(build(epochs=epochs, start_step=start_step), batches=3)

    assert rest == whole[start_step : start_step + 3]


def test_a_start_step_past_the_end_gives_nothing(build):
    assert rows_of(build(epochs=2, start_step=99)) == []


def test_without_shuffling_the_order_is_kept(build):
    batches = rows_of(build(shuffle=False, epochs=2))

    assert batches == [list(range(i, i + 4)) for i in range(0, 20, 4)] * 2


def test_no_python_runs_per_step(build):
    graph = build(group_ids=["a"] * 23)._as_serialized_graph().numpy()

    assert b"PyFunc" not in graph


def test_one_pair_makes_a_batch_of_one(build):
    batches = rows_of(build(QUERIES[:1], DOCUMENTS[:1], batch_size=1, epochs=3))

    assert batches == [[0]] * 3


def test_empty_texts_are_allowed(build):
    batch = next(iter(build([""] * 4, [""] * 4)))

    assert batch["queries"]["token_ids"][:, 0].numpy().tolist() == [1] * 4
    assert batch["queries"]["padding_mask"].numpy().sum() == 4


# 24 rows in 6 interleaved groups of 4.
GROUPS = [f"group {row % 6}" for row in range(24)]
GROUPED = [f"the cat number {i}" for i in range(24)]
GROUPED_ROW_OF = {value: row for row, value in enumerate(fingerprint(GROUPED))}


def groups_of(dataset):
    return [
        [GROUPED_ROW_OF[i] % 6 for i in batch["query_ids"]]
        for batch in dataset.as_numpy_iterator()
    ]


def test_groups_of_the_batch_size_fill_whole_batches(build):
    dataset = build(GROUPED, GROUPED, group_ids=GROUPS)

    batches = groups_of(dataset)

    assert [len(set(batch)) for batch in batches] == [1] * 6
    assert {batch[0] for batch in batches} == set(range(6))


def test_a_batch_of_two_groups_pairs_other_groups_each_epoch(build):
    dataset = build(GROUPED, GROUPED, group_ids=GROUPS, batch_size=8, epochs=4)

    batches = groups_of(dataset)
    epochs = [
        frozenset(frozenset(batch) for batch in batches[i : i + 3])
        for i in range(0, 12, 3)
    ]

    assert {len(set(batch)) for batch in batches} == {2}
    assert len(set(epochs)) > 1


def test_grouped_epochs_differ_and_repeat_by_seed(build):
    options = {"group_ids": GROUPS, "epochs": 2, "batch_size": 4}

    once = groups_of(build(GROUPED, GROUPED, **options))
    again = groups_of(build(GROUPED, GROUPED, **options))

    assert once == again
    assert once[:6] != once[6:]


def test_members_of_a_group_are_shuffled(build):
    options = {"group_ids": ["one"] * 23, "batch_size": 23}

    rows = rows_of(build(epochs=2, **options))

    assert sorted(rows[0]) == sorted(rows[1]) == list(range(23))
    assert rows[0] != rows[1] != list(range(23))


def test_unshuffled_groups_stand_in_order_of_appearance(build):
    dataset = build(GROUPED, GROUPED, group_ids=GROUPS, shuffle=False)

    assert groups_of(dataset) == [[group] * 4 for group in range(6)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 24}, "batch_size=24, 23 pairs"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"batch_size": 4.0}, r"batch_size=4\.0"),
        ({"epochs": 0}, "epochs=0"),
        ({"start_step": -1}, "start_step=-1"),
        ({"documents": DOCUMENTS[:5]}, "23 queries, 5 documents"),
        ({"queries": [*QUERIES[:-1], None]}, r"queries\[22\]=None"),
        ({"documents": [3, *DOCUMENTS[1:]]}, r"documents\[0\]=3"),
        ({"queries": "the cat"}, "queries='the cat'"),
        ({"queries": [], "documents": []}, "0 pairs"),
        ({"group_ids": ["a"]}, "1 entries, 23 pairs"),
        ({"group_ids": [["a"]] * 23}, "unhashable"),
    ],
    ids=[
        "batch_larger_than_data",
        "batch_of_none",
        "float_batch",
        "no_epochs",
        "negative_start",
        "lengths",
        "none_query",
        "int_document",
        "one_string",
        "nothing",
        "short_groups",
        "unhashable_groups",
    ],
)
def test_bad_arguments_are_refused(build, options, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**options)


def test_a_preprocessor_of_another_kind_is_refused(query_preprocessor):
    with pytest.raises(InvalidInputError, match="document_preprocessor=None"):
        training_dataset(
            QUERIES,
            DOCUMENTS,
            query_preprocessor=query_preprocessor,
            document_preprocessor=None,
            batch_size=4,
        )
