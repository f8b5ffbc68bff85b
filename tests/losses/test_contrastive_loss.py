"""What all contrastive losses have in common."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import (
    GTELoss,
    InBatchSoftmaxLoss,
    PairLoss,
    SamToNeLoss,
)
from tf_samtone.losses.pair_batch import PairBatch

ROWS, DIM = 8, 5
QUERY_IDS = np.array([1, 2, 3, 3, 4, 5, 6, 7])
DOCUMENT_IDS = np.array([1, 2, 3, 4, 5, 6, 2, 8])


@pytest.fixture
def batch():
    """Random queries and documents, some of which occur twice."""
    return {
        "queries": testing.random_unit_vectors(0, ROWS, DIM),
        "documents": testing.random_unit_vectors(1, ROWS, DIM),
        "hard_negatives": testing.random_unit_vectors(2, ROWS, 2, DIM),
        "query_ids": QUERY_IDS,
        "document_ids": DOCUMENT_IDS,
    }


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_short_floats_give_the_float32_loss_of_their_values(case, batch, dtype):
    loss = case.loss()
    short = {
        name: tf.cast(batch[name], dtype) if batch[name].ndim > 1 else ids
        for name, ids in batch.items()
    }
    long = {
        name: tf.cast(value, tf.float32) if tf.rank(value) > 1 else value
        for name, value in short.items()
    }
    actual, expected = loss.per_example(**short), loss.per_example(**long)
    assert actual.dtype == tf.float32
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_no_logit_is_formed_in_16_bits(loss, dtype):
    @tf.function
    def step(queries, documents):
        with tf.GradientTape() as tape:
            tape.watch([queries, documents])
            total = tf.reduce_sum(loss.per_example(queries, documents))
        return tape.gradient(total, [queries, documents])

    spec = tf.TensorSpec([ROWS, DIM], dtype)
    graph = step.get_concrete_function(spec, spec).graph.as_graph_def()
    nodes = [
        *graph.node,
        *(n for f in graph.library.function for n in f.node_def),
    ]
    short = tf.as_dtype(dtype).as_datatype_enum
    operations = {node.op for node in nodes if node.attr["T"].type == short}
    assert operations <= {"Identity"}
    assert "MatMul" in {node.op for node in nodes}


def test_float64_stays_float64(loss, batch):
    queries = tf.cast(batch["queries"], tf.float64)
    assert loss.per_example(queries, batch["documents"]).dtype == tf.float64


def test_calling_gives_the_mean_over_the_batch(loss, batch):
    queries, documents = batch["queries"], batch["documents"]
    np.testing.assert_allclose(
        loss(queries, documents),
        np.mean(loss.per_example(queries, documents)),
        rtol=1e-6,
    )


def test_calling_weighs_the_rows(loss, batch):
    queries, documents = batch["queries"], batch["documents"]
    weights = np.arange(ROWS, dtype=np.float32)
    rows = loss.per_example(queries, documents).numpy()
    np.testing.assert_allclose(
        loss(queries, documents, sample_weight=weights),
        np.mean(rows * weights),
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
    specs = {
        name: tf.TensorSpec([None] * (value.ndim - 1) + [DIM], value.dtype)
        if value.ndim > 1
        else tf.TensorSpec([None], value.dtype)
        for name, value in batch.items()
    }
    graph = tf.function(
        lambda arrays: loss.per_example(**arrays), input_signature=[specs]
    )
    expected = loss.per_example(**batch)
    actual = graph({name: tf.constant(v) for name, v in batch.items()})
    assert testing.relative_error(actual, expected) <= 2e-6


def test_xla_compiles_the_loss_and_its_gradient(loss, batch):
    ids = {name: batch.pop(name) for name in ("query_ids", "document_ids")}
    arrays = {name: tf.constant(value) for name, value in batch.items()}

    def step(arrays):
        with tf.GradientTape() as tape:
            tape.watch(arrays)
            rows = loss.per_example(**arrays, **ids)
            total = tf.reduce_sum(rows)
        return {"rows": rows, **tape.gradient(total, arrays)}

    expected = step(arrays)
    actual = tf.function(step, jit_compile=True)(arrays)
    for name, value in expected.items():
        assert testing.relative_error(actual[name], value) <= 2e-6


def test_serialization_restores_class_and_values(case, batch):
    loss = case.loss()
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    assert type(copy) is type(loss)
    assert copy.get_config() == loss.get_config()
    np.testing.assert_array_equal(
        copy.per_example(**batch), loss.per_example(**batch)
    )


def test_masked_pairs_are_counted_over_blocks_and_directions(batch):
    pairs = PairBatch.checked(**batch)
    # Query ids 3 and 3 pair up rows 2 and 3, document ids rows 1 and 6: each
    # is missing from four blocks.
    counts = SamToNeLoss(same_tower="both").count_masked(pairs)
    assert counts.numpy().tolist() == [0, 4, 4, 4, 0, 0, 4, 0]
    counts = InBatchSoftmaxLoss(bidirectional=False).count_masked(pairs)
    assert counts.numpy().tolist() == [0, 1, 1, 1, 0, 0, 1, 0]


def test_masked_hard_negatives_are_no_masked_pairs(batch):
    # The mask says which exist; only an id takes one away.
    pairs = PairBatch.checked(
        **batch,
        hard_negative_mask=np.arange(ROWS * 2).reshape(ROWS, 2) > 3,
        hard_negative_ids=np.full([ROWS, 2], 8),
    )
    counts = InBatchSoftmaxLoss(bidirectional=False).count_masked(pairs)
    assert counts.numpy().tolist() == [0, 1, 1, 1, 0, 0, 1, 12]


@pytest.mark.parametrize(
    "temperature",
    [0, 0.0, -1.0, float("nan"), float("inf"), "low", None, tf.constant(0.1)],
    ids=str,
)
@pytest.mark.parametrize(
    "cls", [InBatchSoftmaxLoss, SamToNeLoss, PairLoss, GTELoss]
)
def test_a_temperature_that_is_not_a_positive_number_is_refused(
    cls, temperature
):
    message = "Expected `temperature` > 0.*temperature=.*LearnedTemperature"
    with pytest.raises(InvalidInputError, match=message):
        cls(temperature=temperature)


BAD_OPTIONS = {
    "direction reduction": (
        {"direction_reduction": "product"},
        r"\('sum', 'mean'\).*direction_reduction='product'",
    ),
    "hard negatives": (
        {"hard_negatives": "none"},
        r"\('all', 'own'\).*hard_negatives='none'",
    ),
    "negative margin": (
        {"margin": -0.1, "margin_position": "inside"},
        "`margin` to be a finite number >= 0.0.*margin=-0.1",
    ),
    "margin without its position": (
        {"margin": 0.1},
        r"\('inside', 'outside'\).*margin_position=None",
    ),
    "unknown margin position": (
        {"margin_position": "above"},
        r"\('inside', 'outside'\).*margin_position='above'",
    ),
    "smoothing": (
        {"label_smoothing": 1.0},
        "`label_smoothing` .* >= 0.0 and < 1.0. Received: label_smoothing=1.0",
    ),
    "weight": (
        {"same_tower_weight": 0},
        "`same_tower_weight` .* > 0.0. Received: same_tower_weight=0",
    ),
    "text as weight": ({"same_tower_weight": "1"}, "same_tower_weight='1'"),
    "bool as weight": ({"same_tower_weight": True}, "=True"),
    "score margin": (
        {"score_margin": float("nan")},
        "`score_margin` to be a finite number. Received: score_margin=nan",
    ),
    "tile size": ({"tile_size": 0}, "`tile_size` .* above 0.*tile_size=0"),
    "fractional tile size": ({"tile_size": 1.5}, "tile_size=1.5.*Pass None"),
}


@pytest.mark.parametrize(
    ("options", "message"), BAD_OPTIONS.values(), ids=BAD_OPTIONS
)
@pytest.mark.parametrize("cls", [InBatchSoftmaxLoss, PairLoss])
def test_options_out_of_range_are_refused(cls, options, message):
    with pytest.raises(InvalidInputError, match=message):
        cls(**options)


def test_numpy_numbers_are_numbers():
    loss = InBatchSoftmaxLoss(
        np.float32(0.5),
        margin=np.float64(0.25),
        margin_position="inside",
        score_margin=np.float32(0.5),
    )
    config = loss.get_config()
    assert [type(config[k]) for k in ("temperature", "score_margin")] == [
        float,
        float,
    ]


def test_inputs_that_do_not_fit_are_refused(loss, batch):
    with pytest.raises(InvalidInputError, match="same shape"):
        loss.per_example(batch["queries"], batch["documents"][:-1])
