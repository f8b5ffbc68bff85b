"""Scaling to unit length."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models import L2Normalization


def test_values_by_hand():
    outputs = L2Normalization()(np.float32([[3, 4], [0, -2]]))
    np.testing.assert_allclose(outputs, [[0.6, 0.8], [0, -1]], rtol=1e-6)


def test_epsilon_is_added_to_the_square():
    # 1 / sqrt(1 + 3)
    outputs = L2Normalization(epsilon=3.0)(np.float32([[1.0]]))
    np.testing.assert_allclose(outputs, [[0.5]], rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 1e-20])
def test_a_zero_vector_and_its_gradient_are_finite(value):
    vector = tf.fill([1, 4], value)
    with tf.GradientTape() as tape:
        tape.watch(vector)
        outputs = L2Normalization()(vector)
    assert np.abs(outputs).max() < 1e-6
    # The slope at zero is 1 / sqrt(epsilon).
    np.testing.assert_allclose(
        tape.gradient(outputs, vector), np.full([1, 4], 1e6), rtol=1e-5
    )


def test_the_length_is_one_for_vectors_of_1e5():
    vectors = 1e5 * np.random.default_rng(0).normal(size=[8, 768])
    outputs = L2Normalization()(vectors.astype(np.float32))
    lengths = np.linalg.norm(outputs.numpy().astype(np.float64), axis=-1)
    np.testing.assert_allclose(lengths, np.ones(8), rtol=1e-6)


def test_bfloat16_inputs_give_float32():
    outputs = L2Normalization()(tf.constant([[3, 4]], tf.bfloat16))
    assert outputs.dtype == tf.float32
    np.testing.assert_allclose(outputs, [[0.6, 0.8]], rtol=1e-6)


def test_the_config_round_trips():
    layer = L2Normalization(epsilon=1e-3, name="unit")
    copy = L2Normalization.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert copy.epsilon == 1e-3
