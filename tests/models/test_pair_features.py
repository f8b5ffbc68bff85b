"""The batches that a dual encoder trains on."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import training_dataset
from tf_samtone.errors import InvalidInputError
from tf_samtone.models.pair_features import (
    as_feature_dataset,
    checked_features,
)

QUERIES = ["a cat", "the dog", "a cat", ""]
DOCUMENTS = ["reads a book", "sleeps", "walks", "a cat"]


@pytest.fixture
def model(make_tiny_dual_encoder):
    return make_tiny_dual_encoder()


def pairs(*columns, batch_size=4):
    return tf.data.Dataset.from_tensor_slices(columns).batch(batch_size)


def features_of(num_rows=4, **ids):
    tokens = {
        "token_ids": np.ones([num_rows, 3], np.int32),
        "padding_mask": np.ones([num_rows, 3], np.int32),
    }
    return {"queries": tokens, "documents": tokens, **ids}


def test_strings_become_the_features_of_each_side(model):
    dataset = as_feature_dataset(model, pairs(QUERIES, DOCUMENTS))
    (batch,) = dataset.as_numpy_iterator()
    for side, texts in (("queries", QUERIES), ("documents", DOCUMENTS)):
        preprocessor = {
            "queries": model.query_preprocessor,
            "documents": model.document_preprocessor,
        }[side]
        for name, expected in preprocessor(texts).items():
            np.testing.assert_array_equal(batch[side][name], expected)


def test_equal_texts_and_only_they_have_equal_ids(model):
    dataset = as_feature_dataset(model, pairs(QUERIES, DOCUMENTS))
    (batch,) = dataset.as_numpy_iterator()
    query_ids, document_ids = batch["query_ids"], batch["document_ids"]
    assert query_ids.dtype == np.int64
    assert query_ids[0] == query_ids[2] == document_ids[3]
    assert len({*query_ids, *document_ids}) == 6


def test_features_pass_through_unchanged(model):
    dataset = tf.data.Dataset.from_tensors(features_of())
    assert as_feature_dataset(model, dataset) is dataset


def test_a_short_last_batch_of_one_is_allowed(model):
    dataset = as_feature_dataset(
        model, pairs(QUERIES[:3], DOCUMENTS[:3], batch_size=2)
    )
    assert [len(b["query_ids"]) for b in dataset.as_numpy_iterator()] == [2, 1]


WRONG_DATASETS = {
    "list": (lambda: [("a", "b")], "Received: list"),
    "lone strings": (lambda: pairs(QUERIES), "string pairs"),
    "triples": (lambda: pairs(QUERIES, DOCUMENTS, DOCUMENTS), "string pairs"),
    "numbers": (lambda: pairs([1, 2], [3, 4]), "string pairs"),
    "labels": (
        lambda: tf.data.Dataset.from_tensors((features_of(), [1])),
        "string pairs",
    ),
    "unbatched strings": (
        lambda: pairs(QUERIES, DOCUMENTS).unbatch(),
        r"dataset\.batch",
    ),
    "unbatched features": (
        lambda: tf.data.Dataset.from_tensor_slices(features_of()),
        r"dataset\.batch",
    ),
    "without documents": (
        lambda: tf.data.Dataset.from_tensors(
            {"queries": features_of()["queries"]}
        ),
        "without documents/token_ids",
    ),
    "bare ids": (
        lambda: tf.data.Dataset.from_tensors(
            {"queries": [[1]], "documents": [[1]]}
        ),
        "without queries/token_ids",
    ),
    "float ids": (
        lambda: tf.data.Dataset.from_tensors(
            features_of(query_ids=np.ones(4, np.float32))
        ),
        "`query_ids` of an integer",
    ),
    "batch of one string pair": (
        lambda: pairs(QUERIES, DOCUMENTS, batch_size=1),
        "at least two pairs",
    ),
    "batch of one feature pair": (
        lambda: tf.data.Dataset.from_tensors(features_of(1)),
        "at least two pairs",
    ),
    "batch of one of unknown size": (
        lambda: tf.data.Dataset.from_tensor_slices(features_of(3)).batch(1),
        "at least two pairs",
    ),
    "empty": (
        lambda: pairs(QUERIES, DOCUMENTS).take(0),
        "without elements",
    ),
    "found empty": (
        lambda: pairs(QUERIES, DOCUMENTS).filter(lambda q, d: False),
        "without elements",
    ),
}


@pytest.mark.parametrize(
    ("make", "message"), WRONG_DATASETS.values(), ids=WRONG_DATASETS
)
def test_other_datasets_are_refused(model, make, message):
    with pytest.raises(InvalidInputError, match=message):
        as_feature_dataset(model, make())


def test_one_batch_may_come_in_a_tuple():
    features = features_of()
    assert checked_features((features,)) is features


def test_one_batch_without_features_is_refused():
    with pytest.raises(InvalidInputError, match="without queries/token_ids"):
        checked_features({"documents": features_of()["documents"]})


def packed_dataset(model, **options):
    return training_dataset(
        [f"a cat {i}" for i in range(16)],
        [f"the small dog {i} sleeps" for i in range(16)],
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        batch_size=8,
        epochs=1,
        packing="rows",
        **options,
    )


def test_packed_batches_in_the_groups_of_the_model_pass(
    make_tiny_dual_encoder,
):
    model = make_tiny_dual_encoder()
    whole = as_feature_dataset(model, packed_dataset(model))
    parts = as_feature_dataset(
        model, packed_dataset(model, packing_groups=4), micro_batch_size=2
    )
    for dataset in (whole, parts):
        assert [b["queries"]["lengths"].shape for b in dataset] == [(8,)] * 2


@pytest.mark.parametrize(
    ("groups", "micro_batch_size"), [(2, None), (1, 2), (2, 2), (8, 2)]
)
def test_packed_batches_in_other_groups_fail(
    make_tiny_dual_encoder, groups, micro_batch_size
):
    model = make_tiny_dual_encoder()
    dataset = as_feature_dataset(
        model,
        packed_dataset(model, packing_groups=groups),
        micro_batch_size=micro_batch_size,
    )
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="packing_groups=[14] "
    ):
        next(iter(dataset))


def test_packed_batches_that_micro_batches_cannot_share_are_refused(
    make_tiny_dual_encoder,
):
    model = make_tiny_dual_encoder()
    with pytest.raises(InvalidInputError, match="8 pairs, 1 replicas"):
        as_feature_dataset(model, packed_dataset(model), micro_batch_size=3)


def test_packed_features_without_lengths_are_refused(make_tiny_dual_encoder):
    model = make_tiny_dual_encoder()

    def drop(batch):
        queries = dict(batch["queries"])
        del queries["lengths"]
        return {**batch, "queries": queries}

    with pytest.raises(InvalidInputError, match="queries/lengths"):
        as_feature_dataset(model, packed_dataset(model).map(drop))
