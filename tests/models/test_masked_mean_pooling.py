"""Mean over the tokens of a text."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models import MaskedMeanPooling

HIDDEN = np.float32([[[1, 2], [3, 6], [9, 9]]])


@pytest.mark.parametrize("dtype", [np.int32, bool, np.float32])
def test_only_tokens_count(dtype):
    mask = np.array([[1, 1, 0]], dtype)
    outputs = MaskedMeanPooling()(HIDDEN, padding_mask=mask)
    np.testing.assert_array_equal(outputs, [[2, 4]])


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_a_value_under_the_padding_reaches_neither_mean_nor_gradient(value):
    hidden = tf.constant([[[1, 2], [value, value]]], tf.float32)
    with tf.GradientTape() as tape:
        tape.watch(hidden)
        outputs = MaskedMeanPooling()(hidden, padding_mask=[[1, 0]])
    gradient = tape.gradient(outputs, hidden)
    np.testing.assert_array_equal(outputs, [[1, 2]])
    np.testing.assert_array_equal(gradient, [[[1, 1], [0, 0]]])


def test_a_text_without_tokens_gives_zeros():
    outputs = MaskedMeanPooling()(HIDDEN, padding_mask=[[0, 0, 0]])
    np.testing.assert_array_equal(outputs, [[0, 0]])


def test_the_sum_is_float32_whatever_the_input():
    # In bfloat16 the sum of 1000 ones would stop at 256.
    hidden = tf.ones([1, 1000, 1], tf.bfloat16)
    outputs = MaskedMeanPooling()(hidden, padding_mask=tf.ones([1, 1000]))
    assert outputs.dtype == tf.float32
    np.testing.assert_array_equal(outputs, [[1]])


def test_hidden_states_of_1e5_are_finite():
    outputs = MaskedMeanPooling()(
        tf.fill([1, 512, 1], 1e5), padding_mask=tf.ones([1, 512])
    )
    np.testing.assert_allclose(outputs, [[1e5]], rtol=1e-6)


def test_the_config_round_trips():
    layer = MaskedMeanPooling(name="mean")
    copy = MaskedMeanPooling.from_config(layer.get_config())
    assert copy.get_config() == layer.get_config()
    assert isinstance(copy, keras.layers.Layer)
