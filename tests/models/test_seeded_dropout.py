"""Dropout by seed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models.dropout_seed import dropout_seed, folded_seed
from tf_samtone.models.seeded_dropout import SeededDropout

ONES = tf.ones([200, 500])


def dropped(seed, rate=0.2, inputs=ONES, layer=None):
    layer = layer or SeededDropout(rate)
    with dropout_seed(folded_seed(seed)):
        return layer(inputs, training=True).numpy()


def test_the_share_of_zeros_is_the_rate():
    share = np.mean(dropped(0) == 0)
    # Four standard deviations of a mean over 100,000.
    assert share == pytest.approx(0.2, abs=4 * (0.2 * 0.8 / 1e5) ** 0.5)


def test_what_is_kept_is_scaled_up():
    outputs = dropped(0)
    np.testing.assert_allclose(np.unique(outputs), [0.0, 1.25], rtol=1e-6)


def test_the_rate_is_exact_in_bfloat16():
    outputs = dropped(0, rate=0.1, inputs=tf.cast(ONES, tf.bfloat16))
    share = np.mean(outputs.astype(np.float32) == 0)
    # Uniform bfloat16 numbers would drop 0.1016 on average.
    assert share == pytest.approx(0.1, abs=4 * (0.1 * 0.9 / 1e5) ** 0.5)


def test_one_seed_drops_the_same_and_another_does_not():
    np.testing.assert_array_equal(dropped(3), dropped(3))
    assert np.mean((dropped(3) == 0) & (dropped(4) == 0)) < 0.06


def test_layers_inside_one_scope_drop_independently():
    layer = SeededDropout(0.2)
    with dropout_seed(folded_seed(0)):
        first, second = (layer(ONES, training=True).numpy() for _ in range(2))
    assert np.mean((first == 0) & (second == 0)) < 0.06


def test_scopes_can_be_nested():
    layer = SeededDropout(0.2)
    with dropout_seed(folded_seed(0)):
        first = layer(ONES, training=True)
        with dropout_seed(folded_seed(9)):
            layer(ONES, training=True)
        second = layer(ONES, training=True)
    with dropout_seed(folded_seed(0)):
        np.testing.assert_array_equal(layer(ONES, training=True), first)
        np.testing.assert_array_equal(layer(ONES, training=True), second)


def test_nothing_is_dropped_outside_of_training():
    with dropout_seed(folded_seed(0)):
        np.testing.assert_array_equal(SeededDropout(0.9)(ONES), ONES)


def test_without_a_scope_it_is_the_dropout_of_keras():
    ours = SeededDropout(0.5, seed=3)(ONES, training=True)
    keras_own = keras.layers.Dropout(0.5, seed=3)(ONES, training=True)
    np.testing.assert_array_equal(ours, keras_own)


def test_a_kept_element_has_the_gradient_of_its_scale():
    layer = SeededDropout(0.2)
    with tf.GradientTape() as tape, dropout_seed(folded_seed(0)):
        tape.watch(ONES)
        outputs = layer(ONES, training=True)
    np.testing.assert_array_equal(tape.gradient(outputs, ONES), outputs)


@pytest.mark.parametrize("numbers", [(1,), (0, 1), (0, 0, 0)], ids=str)
def test_every_number_changes_a_seed(numbers):
    seed = folded_seed(5, 0, 0)
    other = folded_seed(5, *numbers)
    assert np.any(seed.numpy() != other.numpy())


def test_seeds_use_all_64_bits():
    assert np.any(folded_seed(1).numpy() != folded_seed(1 + 2**40).numpy())
