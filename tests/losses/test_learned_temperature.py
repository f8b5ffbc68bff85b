"""A temperature that is trained with the model."""

import keras
import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import (
    InBatchSoftmaxLoss,
    LearnedTemperature,
    SamToNeLoss,
)
from tf_samtone.optimizers import Adafactor

QUERIES = testing.unit_vectors_at(testing.QUERY_DEGREES)
DOCUMENTS = testing.unit_vectors_at(testing.DOCUMENT_DEGREES)


def test_it_starts_where_told():
    temperature = LearnedTemperature(0.2)
    assert temperature.value().numpy() == pytest.approx(0.2, rel=1e-6)
    assert temperature.value().dtype == tf.float32


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "bfloat16", "float64"])
def test_it_has_32_bits_whatever_the_policy(policy):
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(policy)
    try:
        temperature = LearnedTemperature(0.2)
    finally:
        keras.config.set_dtype_policy(before)
    assert temperature.log_temperature.dtype == "float32"


@pytest.mark.parametrize("tile_size", [None, 2])
@pytest.mark.parametrize(
    ("same_tower", "bidirectional", "expected"),
    [("query", False, 0.0016171), ("both", True, 0.0228652)],
)
def test_gradient_of_the_fixture(
    same_tower, bidirectional, expected, tile_size
):
    # The fixture gives d mean / d (1/t); d / d log t is that times -1/t.
    temperature = LearnedTemperature(0.05)
    loss = SamToNeLoss(
        temperature,
        same_tower,
        bidirectional=bidirectional,
        tile_size=tile_size,
    )
    with tf.GradientTape() as tape:
        mean = tf.reduce_mean(loss.per_example(QUERIES, DOCUMENTS))
    (variable,) = loss.trainable_variables
    gradient = tape.gradient(mean, variable.value)
    assert gradient.numpy() == pytest.approx(-20 * expected, rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"margin": 0.1, "margin_position": "inside"},
        {"margin": 0.4, "margin_position": "outside"},
        {"label_smoothing": 0.2},
        {"same_tower_weight": 3.0},
    ],
    ids=["inside", "outside", "smoothing", "weight"],
)
@pytest.mark.parametrize("tile_size", [None, 2])
def test_gradient_with_an_option_agrees_with_the_formula(options, tile_size):
    temperature = LearnedTemperature(0.3)
    loss = SamToNeLoss(temperature, tile_size=tile_size, **options)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(loss.per_example(QUERIES, DOCUMENTS))
    actual = tape.gradient(total, temperature.log_temperature.value)
    batch = testing.ReferenceBatch(QUERIES, DOCUMENTS)

    def formula(log_temperature):
        both = {"temperature": np.exp(log_temperature), **options}
        rows = batch.softmax("QP", "QQ", **both) + batch.softmax("PQ", **both)
        return rows.sum()

    expected = testing.central_differences(formula, np.log(0.3))
    assert actual.numpy() == pytest.approx(expected, rel=1e-5)


def test_losses_train_only_a_learned_temperature():
    temperature = LearnedTemperature()
    loss = InBatchSoftmaxLoss(temperature)
    assert loss.trainable_variables == [temperature.log_temperature]
    assert InBatchSoftmaxLoss(0.05).trainable_variables == []


def test_the_value_does_not_go_below_the_minimum():
    temperature = LearnedTemperature(0.05, minimum=0.02)
    temperature.log_temperature.assign(-9.0)
    assert temperature.value().numpy() == pytest.approx(0.02, rel=1e-6)


@pytest.mark.parametrize(
    "make_optimizer",
    [keras.optimizers.SGD, keras.optimizers.Adam, Adafactor],
    ids=lambda cls: cls.__name__,
)
def test_from_the_minimum_it_can_rise_again(make_optimizer):
    temperature = LearnedTemperature(0.02, minimum=0.02)
    (variable,) = temperature.trainable_variables
    optimizer = make_optimizer(learning_rate=0.5)
    optimizer.apply([tf.constant(0.1)], [variable])
    # That step led out of the range, were it not for the bound.
    assert variable.numpy() == pytest.approx(np.log(0.02))
    with tf.GradientTape() as tape:
        value = temperature.value()
    gradient = tape.gradient(value, variable.value)
    assert gradient.numpy() == pytest.approx(0.02, rel=1e-6)
    optimizer.apply([-1000.0 * gradient], [variable])
    assert temperature.value().numpy() > 0.021


def test_the_bound_is_inclusive():
    temperature = LearnedTemperature(0.02, minimum=0.02)
    assert temperature.value().numpy() == pytest.approx(0.02, rel=1e-6)


@pytest.mark.parametrize(
    ("initial", "minimum"),
    [(0.0, 0.0), (0.01, 0.02), (-1.0, -2.0), (np.nan, 0.1), (np.inf, 0.1)],
)
def test_bounds_out_of_range_are_refused(initial, minimum):
    with pytest.raises(InvalidInputError, match=f"initial={initial}"):
        LearnedTemperature(initial, minimum)


def test_serialization_restores_the_bounds():
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(LearnedTemperature(0.2, 0.03))
    )
    assert copy.initial == 0.2
    assert copy.minimum == 0.03
    assert copy.value().numpy() == pytest.approx(0.2, rel=1e-6)


def test_a_loss_takes_it_through_serialization():
    loss = SamToNeLoss(LearnedTemperature(0.2, 0.03))
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(loss)
    )
    assert isinstance(copy.temperature, LearnedTemperature)
    assert copy.get_config() == loss.get_config()
    np.testing.assert_array_equal(
        copy.per_example(QUERIES, DOCUMENTS),
        loss.per_example(QUERIES, DOCUMENTS),
    )


def test_xla_compiles_its_gradient():
    temperature = LearnedTemperature(0.3)
    loss = SamToNeLoss(temperature, tile_size=2)

    def gradient():
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(loss.per_example(QUERIES, DOCUMENTS))
        return tape.gradient(total, temperature.log_temperature.value)

    compiled = tf.function(gradient, jit_compile=True)
    np.testing.assert_allclose(compiled(), gradient(), rtol=1e-5)
