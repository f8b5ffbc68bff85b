"""The order of batches: resumed, threaded, and told by `batch_rows`."""

import itertools

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import batch_rows, training_dataset
from tf_samtone.text import fingerprint

QUERIES = [f"the cat number {i % 19}" for i in range(26)]
DOCUMENTS = [f"{'dog ' * (i % 9)}{i}" for i in range(26)]
ROW_OF = {value: row for row, value in enumerate(fingerprint(DOCUMENTS))}
UNIQUE_IDS = (fingerprint(QUERIES), fingerprint(DOCUMENTS))
GROUPS = [i % 5 for i in range(26)]

LAYOUTS = {
    "padded": {},
    "buckets": {"query_buckets": (3,), "document_buckets": (4, 7)},
    "packed": {"packing": "rows", "packing_groups": 2},
    "static": {
        "packing": "rows",
        "rows": {"queries": 4, "documents": 4, "hard_negatives": 8},
    },
}
ORDERS = {
    "shuffled": {},
    "unshuffled": {"shuffle": False},
    "grouped": {"group_ids": GROUPS},
    "unique": {"unique_texts": True},
    "unique_grouped": {"unique_texts": True, "group_ids": GROUPS},
    "unique_unshuffled": {"unique_texts": True, "shuffle": False},
}
every_order = pytest.mark.parametrize("order", ORDERS.values(), ids=ORDERS)
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
every_last_batch = pytest.mark.parametrize("last_batch", ["drop", "pad"])


@pytest.fixture
def build(query_preprocessor, document_preprocessor):
    def make(**options):
        options = {"batch_size": 4, "epochs": 2, "seed": 3, **options}
        return training_dataset(
            QUERIES,
            DOCUMENTS,
            query_preprocessor=query_preprocessor,
            document_preprocessor=document_preprocessor,
            **options,
        )

    return make


def assert_same_batches(batches, expected):
    for batch, other in itertools.zip_longest(batches, expected):
        tf.nest.assert_same_structure(batch, other)
        for one, two in zip(
            tf.nest.flatten(batch), tf.nest.flatten(other), strict=True
        ):
            np.testing.assert_array_equal(one, two)


def assert_resumes(build, **options):
    options["hard_negatives"] = [["bird"] * (i % 3) for i in range(26)]
    whole = build(**options)

    resumed = build(start_step=8, **options)

    assert resumed.cardinality() == whole.cardinality() - 8
    assert_same_batches(
        resumed.as_numpy_iterator(), whole.skip(8).as_numpy_iterator()
    )


@every_order
@every_last_batch
def test_a_start_step_skips_exactly_that_many(build, order, last_batch):
    assert_resumes(build, last_batch=last_batch, **order)


@every_layout
def test_a_start_step_skips_alike_in_every_layout(build, layout):
    assert_resumes(build, last_batch="pad", unique_texts=True, **layout)


@pytest.mark.large
@every_layout
@every_order
@every_last_batch
def test_a_start_step_suits_all_options_together(
    build, layout, order, last_batch
):
    assert_resumes(build, last_batch=last_batch, **layout, **order)


@every_layout
@pytest.mark.parametrize("threads", [1, 8])
def test_the_order_does_not_depend_on_threads(build, layout, threads):
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    options.autotune.enabled = threads > 1
    dataset = build(unique_texts=True, **layout)

    assert_same_batches(
        dataset.with_options(options).as_numpy_iterator(),
        dataset.as_numpy_iterator(),
    )


@every_order
@every_last_batch
def test_batch_rows_tells_the_pairs_of_every_step(build, order, last_batch):
    dataset = build(last_batch=last_batch, **order)
    arguments = {"seed": 3, "last_batch": last_batch, **order}
    if arguments.pop("unique_texts", False):
        arguments["unique_ids"] = UNIQUE_IDS

    for step, batch in enumerate(dataset.as_numpy_iterator()):
        is_valid = batch.get("is_valid", np.ones(4, int)) == 1
        expected = [ROW_OF[i] for i in batch["document_ids"][is_valid]]
        assert batch_rows(26, 4, step, **arguments).tolist() == expected


# Checkpoints hold a step, and count on its batch: the first batch of epochs
# 0 and 1 as this order was released.
@pytest.mark.parametrize(
    ("step", "rows"),
    [(0, [18, 22, 10, 12]), (6, [20, 5, 24, 18])],
    ids=["epoch_0", "epoch_1"],
)
def test_the_order_of_a_seed_never_changes(step, rows):
    assert batch_rows(26, 4, step, seed=3).tolist() == rows
