"""Dealing of a batch to groups of about equally many tokens."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data._balanced_groups import balanced_groups


@pytest.mark.parametrize("groups", [1, 2, 4, 32])
def test_groups_differ_by_less_than_the_longest_text(groups):
    lengths = np.random.default_rng(groups).integers(1, 257, 64)

    order = balanced_groups(tf.constant(lengths, tf.int32), groups).numpy()

    sums = lengths[order].reshape(groups, -1).sum(axis=1)
    assert sorted(order) == list(range(64))
    assert sums.max() - sums.min() <= lengths.max()


def test_examples_are_dealt_there_and_back():
    # By length: 3 4 | 0 5 | 1 2, and the second round runs backwards.
    lengths = tf.constant([5, 2, 1, 9, 8, 4])

    order = balanced_groups(lengths, 2)

    # Group 0 gets 3, then 5 of the way back, then 1; group 1 the others.
    assert order.numpy().tolist() == [1, 3, 5, 0, 2, 4]
