"""The losses of other libraries, written out from their formulas."""

import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.losses import InBatchSoftmaxLoss, SamToNeLoss

TEMPERATURE = 0.05
QUERIES = tf.constant(testing.random_unit_vectors(0, 9, 6), tf.float64)
DOCUMENTS = tf.constant(testing.random_unit_vectors(1, 9, 6), tf.float64)
HARD_NEGATIVES = tf.constant(
    testing.random_unit_vectors(2, 9, 2, 6), tf.float64
)
TILE_SIZES = pytest.mark.parametrize("tile_size", [None, 4])


def cross_entropy(logits):
    """Return the mean with row i labelled i."""
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(
            tf.range(logits.shape[0]), logits
        )
    )


def t5x_retrieval(queries, documents, negatives):
    # The logits [batch, batch * (1 + k)] of the left against [batch, batch] of
    # the right, added.
    right = tf.concat([documents, tf.reshape(negatives, [-1, 6])], axis=0)
    left_logits = tf.matmul(queries, right, transpose_b=True) / TEMPERATURE
    right_logits = tf.matmul(documents, queries, transpose_b=True)
    return cross_entropy(left_logits) + cross_entropy(
        right_logits / TEMPERATURE
    )


def sentence_transformers_symmetric(queries, documents):
    scores = tf.matmul(queries, documents, transpose_b=True) / TEMPERATURE
    return (cross_entropy(scores) + cross_entropy(tf.transpose(scores))) / 2


def similarity_sim_clr(hidden1, hidden2):
    # TensorFlow Similarity's SimCLRLoss, after Chen et al.'s published code.
    size = hidden1.shape[0]
    masks = tf.one_hot(tf.range(size), size, dtype=hidden1.dtype) * 1e9

    def logits(a, b):
        return tf.matmul(a, b, transpose_b=True) / TEMPERATURE

    logits_aa = logits(hidden1, hidden1) - masks
    logits_bb = logits(hidden2, hidden2) - masks
    logits_ab, logits_ba = logits(hidden1, hidden2), logits(hidden2, hidden1)
    return cross_entropy(
        tf.concat([logits_ab, logits_aa], axis=1)
    ) + cross_entropy(tf.concat([logits_ba, logits_bb], axis=1))


def assert_equal_with_gradients(loss, published, *arrays):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(arrays)
        actual = tf.reduce_mean(loss.per_example(*arrays))
        expected = published(*arrays)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)
    actual = tape.gradient(actual, arrays)
    expected = tape.gradient(expected, arrays)
    for one, other in zip(actual, expected, strict=True):
        assert testing.relative_error(one, other) <= 1e-12


@TILE_SIZES
def test_the_bidirectional_sum_of_t5x_retrieval(tile_size):
    loss = InBatchSoftmaxLoss(TEMPERATURE, tile_size=tile_size)
    assert_equal_with_gradients(
        loss, t5x_retrieval, QUERIES, DOCUMENTS, HARD_NEGATIVES
    )


@TILE_SIZES
def test_the_symmetric_mean_of_sentence_transformers(tile_size):
    loss = InBatchSoftmaxLoss(
        TEMPERATURE, direction_reduction="mean", tile_size=tile_size
    )
    assert_equal_with_gradients(
        loss, sentence_transformers_symmetric, QUERIES, DOCUMENTS
    )


@TILE_SIZES
def test_both_towers_are_the_sim_clr_of_tensorflow_similarity(tile_size):
    loss = SamToNeLoss(
        TEMPERATURE,
        same_tower="both",
        direction_reduction="sum",
        tile_size=tile_size,
    )
    assert_equal_with_gradients(loss, similarity_sim_clr, QUERIES, DOCUMENTS)


def test_the_margin_of_tf_models_is_inside_the_scale():
    # Additive margin softmax: the margin comes off the diagonal, then scaled.
    def published(queries, documents):
        scores = tf.matmul(queries, documents, transpose_b=True)
        scores -= 0.3 * tf.eye(9, dtype=scores.dtype)
        return cross_entropy(scores / TEMPERATURE)

    loss = InBatchSoftmaxLoss(
        TEMPERATURE,
        bidirectional=False,
        margin=0.3,
        margin_position="inside",
    )
    assert_equal_with_gradients(loss, published, QUERIES, DOCUMENTS)


def test_the_margin_of_t5x_retrieval_is_outside_the_scale():
    def published(queries, documents):
        scores = tf.matmul(queries, documents, transpose_b=True) / TEMPERATURE
        return cross_entropy(scores - 0.3 * tf.eye(9, dtype=scores.dtype))

    loss = InBatchSoftmaxLoss(
        TEMPERATURE,
        bidirectional=False,
        margin=0.3,
        margin_position="outside",
    )
    assert_equal_with_gradients(loss, published, QUERIES, DOCUMENTS)


def test_gecko_has_the_own_hard_negative_only():
    # Equation 3 of Gecko: all documents, the other queries, one hard negative.
    def published(queries, documents, negatives):
        def logits(right):
            return tf.matmul(queries, right, transpose_b=True) / TEMPERATURE

        same_tower = tf.linalg.set_diag(
            logits(queries), tf.fill([9], tf.constant(-np.inf, tf.float64))
        )
        own = tf.einsum("id,ikd->ik", queries, negatives) / TEMPERATURE
        return cross_entropy(
            tf.concat([logits(documents), same_tower, own], axis=1)
        )

    loss = SamToNeLoss(
        TEMPERATURE, bidirectional=False, hard_negatives="own", tile_size=4
    )
    assert_equal_with_gradients(
        loss, published, QUERIES, DOCUMENTS, HARD_NEGATIVES[:, :1]
    )
