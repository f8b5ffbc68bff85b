"""Tests of gathering without a strategy."""

import tensorflow as tf

from tf_samtone.distribution import gather_rows


def test_one_device_gets_its_own_rows_back():
    rows = tf.constant([[1.0], [2.0]])

    (gathered, nothing), offset = gather_rows([rows, None])

    assert gathered is rows
    assert nothing is None
    assert offset == 0
