"""Self-attention of T5."""

import random

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models.t5_self_attention import T5SelfAttention

BATCH, SEQ, HIDDEN, HEADS, WIDTH = 2, 5, 8, 2, 3
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])


def columns(mask):
    """Turn a padding mask into a mask of the tokens attended to."""
    return np.asarray(mask, bool)[:, None, None, :]


@pytest.fixture
def inputs():
    generator = np.random.default_rng(0)
    hidden = generator.normal(size=[BATCH, SEQ, HIDDEN])
    bias = generator.normal(size=[1, HEADS, SEQ, SEQ])
    return hidden.astype(np.float32), bias.astype(np.float32)


def built(**options):
    random.seed(0)
    layer = T5SelfAttention(HIDDEN, HEADS, WIDTH, **options)
    layer.build((None, None, HIDDEN))
    return layer


def reference(layer, hidden, mask, bias):
    """Attend in float64, one row, head and token at a time."""
    kernels = {
        name: getattr(layer, f"{name}_projector").kernel.numpy().astype(float)
        for name in ("query", "key", "value", "output")
    }
    outputs = np.zeros([BATCH, SEQ, HIDDEN])
    for row in range(BATCH):
        query, key, value = (
            hidden[row] @ kernels[name] for name in ("query", "key", "value")
        )
        tokens = np.flatnonzero(mask[row])
        for i in range(SEQ):
            attended = []
            for head in range(HEADS):
                part = slice(head * WIDTH, (head + 1) * WIDTH)
                # T5 does not divide by the root of the width.
                scores = key[tokens, part] @ query[i, part]
                weights = np.exp(scores + bias[0, head, i, tokens])
                weights /= weights.sum()
                attended.append(weights @ value[tokens, part])
            outputs[row, i] = np.concatenate(attended) @ kernels["output"]
    return outputs


def test_outputs_agree_with_the_reference(inputs):
    hidden, bias = inputs
    layer = built()
    outputs = layer(hidden, attention_mask=columns(MASK), position_bias=bias)
    expected = reference(layer, hidden, MASK, bias)
    np.testing.assert_allclose(outputs, expected, rtol=0, atol=1e-5)


def test_a_square_mask_keeps_segments_apart(inputs):
    hidden, bias = inputs
    layer = built()
    segments = np.array([[1, 1, 2, 2, 2], [1, 1, 1, 2, 2]])
    together = layer(
        hidden,
        attention_mask=segments[:, None, :, None] == segments[:, None, None, :],
        position_bias=bias,
    )
    for number in (1, 2):
        alone = layer(
            hidden,
            attention_mask=columns(segments == number),
            position_bias=bias,
        )
        here = segments == number
        np.testing.assert_allclose(
            together.numpy()[here], alone.numpy()[here], rtol=0, atol=1e-6
        )


def test_what_stands_under_the_padding_does_not_matter(inputs):
    hidden, bias = inputs
    layer = built()
    other = np.where(MASK[..., None] > 0, hidden, 1e4).astype(np.float32)
    expected = layer(
        hidden, attention_mask=columns(MASK), position_bias=bias
    ).numpy()
    actual = layer(
        other, attention_mask=columns(MASK), position_bias=bias
    ).numpy()
    np.testing.assert_array_equal(actual[MASK > 0], expected[MASK > 0])


def test_a_row_without_tokens_is_finite(inputs):
    hidden, bias = inputs
    outputs = built()(
        hidden, attention_mask=columns(0 * MASK), position_bias=bias
    )
    assert np.isfinite(outputs).all()


def test_scores_beyond_the_range_of_exp_are_finite(inputs):
    hidden, bias = inputs
    outputs = built()(
        100 * hidden, attention_mask=columns(MASK), position_bias=1e4 * bias
    )
    assert np.isfinite(outputs).all()


def test_the_softmax_is_float32_in_mixed_precision():
    # Values are the tokens themselves, and all scores are zero.
    layer = T5SelfAttention(1, 1, 1, dtype="mixed_bfloat16")
    layer.build((None, None, 1))
    for projector in (layer.query_projector, layer.key_projector):
        projector.kernel.assign([[0.0]])
    for projector in (layer.value_projector, layer.output_projector):
        projector.kernel.assign([[1.0]])
    bias = np.float32([[20.0, 20.05]])[None, None]
    hidden = tf.constant([[[0.0], [1.0]]], tf.bfloat16)
    outputs = layer(
        hidden,
        attention_mask=columns(np.ones([1, 2])),
        position_bias=np.tile(bias, [1, 1, 2, 1]),
    )
    # 1 / (1 + exp(-0.05)) = 0.5125; in bfloat16 both biases would be 20.
    np.testing.assert_allclose(float(outputs[0, 0, 0]), 0.5125, atol=2e-3)


def test_dropout_acts_in_training_only(inputs):
    hidden, bias = inputs
    layer, without = built(dropout=0.5), built()
    without.set_weights(layer.get_weights())
    arguments = {"attention_mask": columns(MASK), "position_bias": bias}
    outputs = [layer(hidden, training=t, **arguments) for t in (True, False)]
    plain = without(hidden, **arguments)
    np.testing.assert_array_equal(outputs[1], plain)
    assert np.abs(outputs[0] - plain).max() > 1e-3


def test_the_config_round_trips():
    layer = built(dropout=0.25, dtype="mixed_bfloat16", name="attention")
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert copy.get_config() == layer.get_config()
    assert copy.dtype_policy.name == "mixed_bfloat16"
    assert copy.dropout == 0.25
