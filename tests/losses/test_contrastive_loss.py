"""What all contrastive losses have in common."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import InBatchSoftmaxLoss, SamToNeLoss

LOSSES = {
    "in_batch": InBatchSoftmaxLoss(temperature=0.05),
    "one_way": InBatchSoftmaxLoss(temperature=0.05, bidirectional=False),
    "query": SamToNeLoss(temperature=0.05),
    "document": SamToNeLoss(temperature=0.05, same_tower="document"),
    "both": SamToNeLoss(
        temperature=0.05, same_tower="both", direction_reduction="mean"
    ),
}
BATCH, DIM = 8, 5
QUERY_IDS = np.array([1, 2, 3, 3, 4, 5, 6, 7])
DOCUMENT_IDS = np.array([1, 2, 3, 4, 5, 6, 2, 8])


@pytest.fixture(params=LOSSES.values(), ids=LOSSES)
def loss(request):
    return request.param


@pytest.fixture
def batch():
    """Random queries and documents, some of which occur twice."""
    return {
        "queries": testing.random_unit_vectors(0, BATCH, DIM),
        "documents": testing.random_unit_vectors(1, BATCH, DIM),
        "query_ids": QUERY_IDS,
        "document_ids": DOCUMENT_IDS,
    }


def value_and_gradients(loss, queries, documents, **kwargs):
    queries, documents = tf.constant(queries), tf.constant(documents)
    with tf.GradientTape() as tape:
        tape.watch([queries, documents])
        values = loss.per_example(queries, documents, **kwargs)
        total = tf.reduce_sum(values)
    gradients = tape.gradient(total, [queries, documents])
    return values.numpy(), *[g.numpy() for g in gradients]


@pytest.mark.parametrize("num_blocks", [2, 4])
def test_blocks_of_rows_against_all_columns_equal_the_whole(
    loss, batch, num_blocks
):
    # Each block stands for a replica that sees all rows but owns a few.
    whole, *whole_gradients = value_and_gradients(loss, **batch)
    rows = BATCH // num_blocks
    queries = tf.constant(batch["queries"])
    documents = tf.constant(batch["documents"])
    with tf.GradientTape() as tape:
        tape.watch([queries, documents])
        parts = []
        for start in range(0, BATCH, rows):
            part = slice(start, start + rows)
            parts.append(
                loss.per_example(
                    queries[part],
                    documents[part],
                    query_ids=QUERY_IDS[part],
                    document_ids=DOCUMENT_IDS[part],
                    row_offset=start,
                    all_queries=queries,
                    all_documents=documents,
                    all_query_ids=QUERY_IDS,
                    all_document_ids=DOCUMENT_IDS,
                )
            )
        values = tf.concat(parts, axis=0)
        total = tf.reduce_sum(values)
    gradients = tape.gradient(total, [queries, documents])
    np.testing.assert_allclose(values, whole, rtol=1e-6, atol=1e-6)
    for actual, expected in zip(gradients, whole_gradients, strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5)


def test_permuting_the_batch_permutes_the_rows(loss, batch):
    order = np.random.default_rng(2).permutation(BATCH)
    shuffled = {name: value[order] for name, value in batch.items()}
    np.testing.assert_allclose(
        loss.per_example(**shuffled),
        loss.per_example(**batch).numpy()[order],
        rtol=1e-5,
        atol=1e-6,
    )


def test_a_batch_of_one_has_no_loss_and_no_gradient(loss):
    values, *gradients = value_and_gradients(
        loss, np.float32([[0.6, 0.8]]), np.float32([[1.0, 0.0]])
    )
    assert values.tolist() == [0.0]
    np.testing.assert_array_equal(gradients, np.zeros([2, 1, 2]))


def test_a_row_with_all_others_masked_has_no_loss_and_no_gradient(loss, batch):
    batch["query_ids"] = np.full(BATCH, 3)
    values, *gradients = value_and_gradients(loss, **batch)
    np.testing.assert_array_equal(values, np.zeros(BATCH))
    np.testing.assert_array_equal(gradients, np.zeros([2, BATCH, DIM]))


@pytest.mark.parametrize("temperature", [0.01, 0.001])
def test_identical_rows_stay_finite_at_low_temperature(loss, temperature):
    loss = loss.from_config({**loss.get_config(), "temperature": temperature})
    same = np.tile(np.float32([[0.6, 0.8]]), [4, 1])
    values, *gradients = value_and_gradients(loss, same, same)
    assert np.isfinite(values).all()
    assert np.isfinite(gradients).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_any_float_input_gives_the_float32_loss_of_its_values(
    loss, batch, dtype
):
    queries = tf.cast(batch["queries"], dtype)
    documents = tf.cast(batch["documents"], dtype)
    actual = loss.per_example(queries, documents)
    expected = loss.per_example(
        tf.cast(queries, tf.float32), tf.cast(documents, tf.float32)
    )
    assert actual.dtype == tf.float32
    np.testing.assert_array_equal(actual, expected)


def test_nan_in_a_query_reaches_the_loss(loss, batch):
    batch["queries"][0] = np.nan
    assert np.isnan(loss(batch["queries"], batch["documents"]))


def test_calling_gives_the_mean_over_the_batch(loss, batch):
    queries, documents = batch["queries"], batch["documents"]
    np.testing.assert_allclose(
        loss(queries, documents),
        np.mean(loss.per_example(queries, documents)),
        rtol=1e-6,
    )


@pytest.mark.parametrize("dim", [1, 3], ids=["narrow", "square"])
def test_calling_does_not_squeeze_or_pair_the_axes(loss, dim):
    # Keras losses drop a last axis of 1 in some cases.
    queries = testing.random_unit_vectors(3, 3, dim)
    documents = testing.random_unit_vectors(4, 3, dim)
    np.testing.assert_allclose(
        loss(queries, documents),
        np.mean(loss.per_example(queries, documents)),
        rtol=1e-6,
    )


def test_an_unknown_batch_size_gives_the_same_values(loss, batch):
    spec = tf.TensorSpec([None, DIM], tf.float32)
    ids = tf.TensorSpec([None], tf.int64)
    graph = tf.function(
        lambda q, p, a, b: loss.per_example(q, p, query_ids=a, document_ids=b),
        input_signature=[spec, spec, ids, ids],
    )
    actual = graph(
        batch["queries"], batch["documents"], QUERY_IDS, DOCUMENT_IDS
    )
    expected = loss.per_example(**batch)
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def test_xla_compiles_the_loss(loss, batch):
    compiled = tf.function(loss.per_example, jit_compile=True)
    np.testing.assert_allclose(
        compiled(**batch), loss.per_example(**batch), rtol=1e-5, atol=1e-6
    )


def test_serialization_restores_class_and_values(loss, batch):
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    assert type(copy) is type(loss)
    assert copy.get_config() == loss.get_config()
    np.testing.assert_array_equal(
        copy.per_example(**batch), loss.per_example(**batch)
    )


@pytest.mark.parametrize(
    "temperature", [0, 0.0, -1.0, float("nan"), float("inf"), "low", None]
)
@pytest.mark.parametrize("cls", [InBatchSoftmaxLoss, SamToNeLoss])
def test_a_temperature_that_is_not_positive_is_refused(cls, temperature):
    with pytest.raises(InvalidInputError, match="Expected `temperature` > 0"):
        cls(temperature=temperature)


@pytest.mark.parametrize("cls", [InBatchSoftmaxLoss, SamToNeLoss])
def test_an_unknown_direction_reduction_lists_the_known(cls):
    with pytest.raises(InvalidInputError, match=r"'sum', 'mean'.*'product'"):
        cls(direction_reduction="product")


def vectors(*shape):
    return np.zeros(shape, np.float32)


BAD_INPUTS = {
    "rank": ({"queries": vectors(3), "documents": vectors(3)}, r"\[batch, d"),
    "rows": (
        {"queries": vectors(3, 2), "documents": vectors(4, 2)},
        "same shape",
    ),
    "width": (
        {"queries": vectors(3, 2), "documents": vectors(3, 4)},
        "same shape",
    ),
    "float ids": ({"query_ids": [1.0, 2.0, 3.0]}, "integer dtype"),
    "column of ids": ({"query_ids": [[1], [2], [3]]}, "one id per row"),
    "too few ids": ({"document_ids": [1, 2]}, "`document_ids` of shape"),
    "one side gathered": ({"all_queries": vectors(6, 2)}, "together"),
    "gathered width": (
        {"all_queries": vectors(6, 4), "all_documents": vectors(6, 4)},
        "as wide as",
    ),
    "ids not gathered": (
        {
            "all_queries": vectors(6, 2),
            "all_documents": vectors(6, 2),
            "query_ids": [1, 2, 3],
        },
        "`all_query_ids` with",
    ),
    "gathered float ids": (
        {
            "all_queries": vectors(3, 2),
            "all_documents": vectors(3, 2),
            "query_ids": [1, 2, 3],
            "all_query_ids": [1.0, 2.0, 3.0],
        },
        "`all_query_ids` of an integer",
    ),
    "rank of hard negatives": (
        {"hard_negatives": vectors(3, 2)},
        r"\[batch, k, 2\]",
    ),
    "width of hard negatives": (
        {"hard_negatives": vectors(3, 1, 5)},
        r"\[batch, k, 2\]",
    ),
    "shape of the hard negative mask": (
        {
            "hard_negatives": vectors(3, 2, 2),
            "hard_negative_mask": np.ones([3, 1], bool),
        },
        "hard_negative_mask",
    ),
}


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_INPUTS.values(), ids=BAD_INPUTS
)
def test_inputs_that_do_not_fit_are_refused(loss, arguments, message):
    good = {"queries": vectors(3, 2), "documents": vectors(3, 2)}
    with pytest.raises(InvalidInputError, match=message):
        loss.per_example(**{**good, **arguments})
