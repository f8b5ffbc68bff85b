"""Relative position bias."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models.t5_position_bias import (
    T5PositionBias,
    relative_position_bucket,
)


def bucket_by_integers(distance: int) -> int:
    """T5's definition for 32 buckets and distance 128, without logarithms.

    The 8 wide buckets of a half grow by 16 ** (1 / 8), the square root of 2,
    so that their number is floor(log2((distance / 8) ** 2)).
    """
    offset = 16 if distance > 0 else 0
    distance = abs(distance)
    if distance < 8:
        return offset + distance
    wide = (distance**2 // 64).bit_length() - 1
    return offset + min(8 + wide, 15)


def test_buckets_agree_with_the_definition():
    distances = np.arange(-700, 701, dtype=np.int32)
    expected = [bucket_by_integers(int(d)) for d in distances]
    np.testing.assert_array_equal(relative_position_bucket(distances), expected)


@pytest.mark.parametrize(
    ("distance", "bucket"),
    [
        (0, 0),
        (-1, 1),
        (1, 17),
        (-7, 7),
        (7, 23),
        (-8, 8),
        (-128, 15),
        (9e8, 31),
    ],
)
def test_buckets_of_single_distances(distance, bucket):
    assert relative_position_bucket(np.int32(distance)) == bucket


def built(num_heads=3, **options):
    layer = T5PositionBias(num_heads, **options)
    layer.build(None)
    return layer


def test_entry_of_row_i_and_column_j_is_that_of_the_distance_j_minus_i():
    layer = built()
    seq = 40
    bias = layer(np.zeros([2, seq, 5], np.float32)).numpy()
    table = layer.relative_attention_bias.numpy()
    expected = np.empty([1, 3, seq, seq], np.float32)
    for i, j in np.ndindex(seq, seq):
        expected[0, :, i, j] = table[bucket_by_integers(j - i)]
    np.testing.assert_array_equal(bias, expected)


def test_the_bias_of_a_short_text_is_a_corner_of_a_long_ones():
    layer = built()
    long = layer(np.zeros([1, 30, 5], np.float32)).numpy()
    short = layer(np.zeros([1, 7, 5], np.float32)).numpy()
    np.testing.assert_array_equal(short, long[:, :, :7, :7])


def test_the_bias_is_exact_float32_in_mixed_precision():
    layer = built(dtype="mixed_bfloat16")
    table = np.random.default_rng(0).normal(size=(32, 3)).astype(np.float32)
    layer.relative_attention_bias.assign(table)
    bias = layer(tf.zeros([1, 5, 5], tf.bfloat16))
    assert bias.dtype == tf.float32
    np.testing.assert_array_equal(bias[0, :, 2, 2], table[0])


def test_the_config_round_trips():
    layer = T5PositionBias(3, name="bias", dtype="mixed_bfloat16")
    copy = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(layer)
    )
    assert copy.get_config() == layer.get_config()
    assert copy.num_heads == 3
