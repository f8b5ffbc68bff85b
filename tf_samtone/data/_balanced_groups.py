"""Cutting a batch into groups that hold about equally many tokens."""

import tensorflow as tf


def balanced_groups(lengths: tf.Tensor, groups: int) -> tf.Tensor:
    """Deals examples to groups so that no group needs many more rows.

    All groups of a packed batch get as many rows as the fullest needs. From
    long to short, one example goes to each group in turn, and back: no group
    has more tokens than another by more than one text's length.

    Args:
        lengths: int32 `[batch]`, tokens of each example.
        groups: int, divides the batch.

    Returns:
        int32 `[batch]`, the examples of the first group, of the second, and
        so on; in a group they keep their order.
    """
    by_length = tf.argsort(lengths, direction="DESCENDING", stable=True)
    rounds = tf.reshape(by_length, [-1, groups])
    is_way_back = tf.range(tf.shape(rounds)[0])[:, tf.newaxis] % 2 == 1
    dealt = tf.where(is_way_back, tf.reverse(rounds, axis=[1]), rounds)
    members = tf.sort(tf.transpose(dealt), axis=1)
    return tf.reshape(members, [-1])
