"""Means of the segments of packed rows."""

import numpy as np
import tensorflow as tf

from tf_samtone.models.segment_mean_pooling import SegmentMeanPooling

SEGMENTS = np.array([[1, 1, 3, 3, 3, 0], [2, 0, 0, 0, 0, 0]], np.int32)
LENGTHS = np.array([2, 1, 3], np.int32)


def hidden():
    return np.random.default_rng(0).normal(size=[2, 6, 4]).astype(np.float32)


def test_every_segment_gets_the_mean_of_its_tokens():
    x = hidden()
    expected = [x[0, :2].mean(0), x[1, 0], x[0, 2:5].mean(0)]
    pooled = SegmentMeanPooling()(x, segment_ids=SEGMENTS, lengths=LENGTHS)
    np.testing.assert_allclose(pooled, expected, rtol=0, atol=1e-6)


def test_what_stands_under_the_padding_does_not_matter():
    x = hidden()
    other = np.where(SEGMENTS[:, :, None] > 0, x, np.nan)
    layer = SegmentMeanPooling()
    np.testing.assert_array_equal(
        layer(other, segment_ids=SEGMENTS, lengths=LENGTHS),
        layer(x, segment_ids=SEGMENTS, lengths=LENGTHS),
    )


def test_lengths_of_several_texts_per_pair_are_read_row_by_row():
    x = hidden()
    lengths = np.array([[2, 1], [3, 1]], np.int32)
    pooled = SegmentMeanPooling()(x, segment_ids=SEGMENTS, lengths=lengths)
    assert pooled.shape == (4, 4)
    np.testing.assert_allclose(pooled[2], x[0, 2:5].mean(0), atol=1e-6)
    np.testing.assert_array_equal(pooled[3], np.zeros(4))


def test_sums_are_float32_whatever_comes_in():
    x = tf.cast(tf.ones([1, 300, 1]) * 1.0, tf.bfloat16)
    ids = tf.ones([1, 300], tf.int32)
    pooled = SegmentMeanPooling()(
        x, segment_ids=ids, lengths=tf.constant([300])
    )
    # A bfloat16 sum of ones stops at 256.
    assert pooled.dtype == tf.float32
    np.testing.assert_array_equal(pooled, [[1.0]])
