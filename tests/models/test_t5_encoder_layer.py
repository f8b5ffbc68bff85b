"""One layer of the encoder."""

import math
import random

import keras
import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.t5_encoder_layer import T5EncoderLayer

SIZES = {
    "hidden_dim": 8,
    "intermediate_dim": 12,
    "num_heads": 2,
    "key_value_dim": 3,
}
MASK = np.array([[1, 1, 1, 1], [1, 1, 0, 0]])
ACTIVATIONS = {
    "relu": lambda x: np.maximum(x, 0),
    # The tanh form of T5 1.1, not the exact one.
    "gelu": lambda x: (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
}


def built(**options):
    random.seed(0)
    layer = T5EncoderLayer(**SIZES, **options)
    layer.build((None, None, SIZES["hidden_dim"]))
    return layer


def call(layer, hidden, **options):
    bias = np.zeros([1, 2, 4, 4], np.float32)
    return layer(
        hidden,
        attention_mask=MASK[:, None, None, :] > 0,
        position_bias=bias,
        **options,
    )


@pytest.fixture
def hidden():
    x = np.random.default_rng(1).normal(size=[2, 4, 8])
    return x.astype(np.float32)


def normalised(x, norm):
    scale = np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)
    return x / scale * norm.weight.numpy()


@pytest.mark.parametrize("gated", [True, False], ids=["gated", "plain"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_outputs_agree_with_the_formula(hidden, activation, gated):
    layer = built(activation=activation, use_gated_activation=gated)
    for norm in (layer.self_attention_layer_norm, layer.layer_norm):
        norm.weight.assign(np.linspace(0.5, 1.5, 8))
    x = hidden.astype(np.float64)
    x = x + layer.self_attention(
        normalised(x, layer.self_attention_layer_norm).astype(np.float32),
        attention_mask=MASK[:, None, None, :] > 0,
        position_bias=np.zeros([1, 2, 4, 4], np.float32),
    )
    inner = normalised(x.numpy(), layer.layer_norm)
    expected = ACTIVATIONS[activation](inner @ layer.input_projector.kernel)
    if gated:
        expected = expected * (inner @ layer.gate_projector.kernel)
    expected = x + expected @ layer.output_projector.kernel
    np.testing.assert_allclose(call(layer, hidden), expected, rtol=0, atol=2e-5)


def test_an_ungated_layer_has_no_gate():
    assert built(use_gated_activation=False).gate_projector is None


def test_dropout_acts_in_training_only(hidden):
    layer, without = built(dropout=0.5), built()
    without.set_weights(layer.get_weights())
    plain = call(without, hidden)
    np.testing.assert_array_equal(call(layer, hidden, training=False), plain)
    assert np.abs(call(layer, hidden, training=True) - plain).max() > 1e-2


def test_an_unknown_activation_lists_the_known():
    with pytest.raises(InvalidInputError, match="'relu', 'gelu'.*'swish'"):
        T5EncoderLayer(**SIZES, activation="swish")


def test_the_config_round_trips():
    layer = built(
        dropout=0.25,
        activation="relu",
        use_gated_activation=False,
        layer_norm_epsilon=1e-3,
        dtype="mixed_bfloat16",
        name="layer",
    )
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert copy.get_config() == layer.get_config()
    assert copy.layer_norm.epsilon == 1e-3
    assert copy.gate_projector is None
