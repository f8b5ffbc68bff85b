"""Root-mean-square normalisation."""

import keras
import numpy as np
import tensorflow as tf

from tf_samtone.models.t5_layer_norm import T5LayerNorm


def built(dim, weight=None, **options):
    layer = T5LayerNorm(**options)
    layer.build((None, dim))
    if weight is not None:
        layer.weight.assign(weight)
    return layer


def test_values_by_hand():
    # mean(3^2, 4^2) = 12.5; no centring, so 3 and 4 keep their ratio.
    outputs = built(2, [1.0, 10.0])(np.float32([[3.0, 4.0]]))
    expected = [[3 / 12.5**0.5, 40 / 12.5**0.5]]
    np.testing.assert_allclose(outputs, expected, rtol=1e-6)


def test_epsilon_is_under_the_root():
    outputs = built(1, epsilon=3.0)(np.float32([[1.0]]))
    np.testing.assert_allclose(outputs, [[0.5]], rtol=1e-6)


def test_zeros_stay_zeros():
    assert not built(3)(np.zeros([2, 3], np.float32)).numpy().any()


def test_values_of_1e5_are_finite_and_exact_in_bfloat16():
    x = np.random.default_rng(0).normal(size=[4, 64]) * 1e5
    x = tf.cast(x, tf.bfloat16)
    outputs = built(64, dtype="mixed_bfloat16")(x)
    exact = x.numpy().astype(np.float64)
    exact /= np.sqrt((exact**2).mean(-1, keepdims=True))
    assert outputs.dtype == tf.bfloat16
    # One rounding to bfloat16, whose steps are 2**-8 apart.
    np.testing.assert_allclose(
        tf.cast(outputs, tf.float32), exact, rtol=2**-8, atol=0
    )


def test_the_weight_is_not_rounded_to_bfloat16():
    # 257 / sqrt(5) = 114.93, which bfloat16 rounds to 115; a weight rounded
    # to bfloat16 would be 256 and give 114.49, rounded to 114.5.
    layer = built(2, [257.0, 257.0], dtype="mixed_bfloat16")
    outputs = layer(tf.cast([[3.0, 1.0]], tf.bfloat16))
    assert float(outputs[0, 1]) == 115.0


def test_the_config_round_trips():
    layer = T5LayerNorm(epsilon=1e-3, dtype="mixed_bfloat16", name="norm")
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert copy.get_config() == layer.get_config()
    assert copy.epsilon == 1e-3
