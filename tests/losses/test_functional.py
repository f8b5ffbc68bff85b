"""The contrastive softmax over blocks."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.losses import functional


def loss_and_gradients(positive, negatives, mask, temperature=1.0):
    positive = tf.constant(positive, tf.float32)
    negatives = tf.constant(negatives, tf.float32)
    with tf.GradientTape() as tape:
        tape.watch([positive, negatives])
        loss = functional.contrastive_softmax_loss(
            positive,
            [functional.Block(negatives, tf.constant(mask))],
            temperature,
        )
    return loss.numpy(), *[
        g.numpy() for g in tape.gradient(loss, [positive, negatives])
    ]


def test_positive_similarities_are_the_products_of_the_rows():
    similarities = functional.positive_similarities(
        tf.constant([[1.0, 0.0], [0.6, 0.8]]),
        tf.constant([[0.6, 0.8], [0.8, 0.6]]),
    )
    np.testing.assert_allclose(similarities, [0.6, 0.96], rtol=1e-6)


def test_loss_and_gradient_by_hand():
    # Logits 0 (positive), log 2 and log 5 (masked) at temperature 0.1: the
    # loss is log(1 + 2), and the negative holds 2/3 of the mass.
    loss, d_positive, d_negatives = loss_and_gradients(
        [0.0], [[0.1 * math.log(2), 0.1 * math.log(5)]], [[True, False]], 0.1
    )
    np.testing.assert_allclose(loss, [math.log(3)], rtol=1e-6)
    np.testing.assert_allclose(d_positive, [-20 / 3], rtol=1e-6)
    np.testing.assert_allclose(d_negatives, [[20 / 3, 0]], rtol=1e-6)


def test_blocks_share_one_denominator():
    # log(1 + 2 + 3), not log(1 + 2) + log(1 + 3).
    ones = tf.ones([1, 1], tf.bool)
    blocks = [
        functional.Block(tf.math.log([[2.0]]), ones),
        functional.Block(tf.math.log([[3.0]]), ones),
    ]
    loss = functional.contrastive_softmax_loss(tf.zeros([1]), blocks, 1.0)
    np.testing.assert_allclose(loss, [math.log(6)], rtol=1e-6)


def test_the_log_sum_exp_adds_no_one_of_its_own():
    # With logits at -50 an extra exp(0) in the sum would give 50.
    loss, *_ = loss_and_gradients([-50.0], [[-50.0]], [[True]])
    np.testing.assert_allclose(loss, [math.log(2)], rtol=1e-6)


def test_a_row_without_negatives_has_no_loss_and_no_gradient():
    loss, d_positive, d_negatives = loss_and_gradients(
        [93.7], [[99.0, 98.0]], [[False, False]]
    )
    assert loss.tolist() == [0.0]
    assert d_positive.tolist() == [0.0]
    assert d_negatives.tolist() == [[0.0, 0.0]]


def test_no_blocks_at_all_give_no_loss():
    loss = functional.contrastive_softmax_loss(tf.constant([3.0]), [], 1.0)
    assert loss.numpy().tolist() == [0.0]


@pytest.mark.parametrize("masked", [np.nan, np.inf, 1e30])
def test_a_masked_logit_does_not_matter(masked):
    loss, d_positive, d_negatives = loss_and_gradients(
        [0.0], [[masked, 0.0]], [[False, True]]
    )
    np.testing.assert_allclose(loss, [math.log(2)], rtol=1e-6)
    np.testing.assert_allclose(d_positive, [-0.5], rtol=1e-6)
    np.testing.assert_allclose(d_negatives, [[0, 0.5]], rtol=1e-6)


def test_nan_in_a_negative_is_reported_not_dropped():
    loss, *_ = loss_and_gradients([0.0, 0.0], [[np.nan], [0.0]], [[True]] * 2)
    assert np.isnan(loss[0])
    np.testing.assert_allclose(loss[1], math.log(2), rtol=1e-6)


def test_logits_far_beyond_the_range_of_exp_stay_finite():
    loss, d_positive, _ = loss_and_gradients([-1000.0], [[1000.0]], [[True]])
    assert loss.tolist() == [2000.0]
    assert d_positive.tolist() == [-1.0]


def test_a_small_loss_beside_large_logits_keeps_its_digits():
    # log(1 + exp(-4)) beside a logit of 1000, where float32 steps are 6e-5.
    loss, d_positive, _ = loss_and_gradients([1000.0], [[996.0]], [[True]])
    np.testing.assert_allclose(loss, [math.log1p(math.exp(-4))], rtol=1e-5)
    np.testing.assert_allclose(d_positive, [-1 / (1 + math.exp(4))], rtol=1e-6)
