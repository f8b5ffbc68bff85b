"""Exact contrastive softmax over blocks of columns.

Every softmax loss of this package is a choice of blocks per direction. A block
is a matrix of logits `[rows, columns]` with a boolean mask of the columns that
take part; the positive of a row stands apart, so that it is counted once and
never masked.
"""

from typing import NamedTuple

import tensorflow as tf

__all__ = ["Block", "contrastive_softmax_loss", "positive_logits"]


class Block(NamedTuple):
    """One block of the denominator.

    Attributes:
        logits: float32 `[rows, columns]`, similarities over temperature.
        mask: bool `[rows, columns]`, true where the column is a negative.
    """

    logits: tf.Tensor
    mask: tf.Tensor


def positive_logits(anchors, positives, temperature):
    """Returns float32 `[rows]`, the logit of each row with its positive."""
    return tf.reduce_sum(anchors * positives, axis=-1) / temperature


def contrastive_softmax_loss(positive, blocks):
    """Computes the negative log probability of the positive, row by row.

        loss_i = log( 1 + sum_blocks sum_{j in mask_i} exp(l_ij - l_ii) )

    Args:
        positive: float32 `[rows]`, logit of the positive.
        blocks: sequence of `Block`.

    Returns:
        float32 `[rows]`, at least 0; exactly 0 for a row without negatives.
    """
    # Relative to the positive, whose own term is then exp(0): at a temperature
    # of 0.01 the logits are near 100, and log(sum) - positive would lose all
    # but five digits of a small loss and of its gradient.
    positive = positive[:, None]
    columns = [tf.zeros_like(positive)]
    for block in blocks:
        # `where` and -inf, not a large negative number: exact in any dtype,
        # and the zero of the positive keeps every row's maximum finite.
        minus_infinity = tf.constant(-float("inf"), block.logits.dtype)
        columns.append(
            tf.where(block.mask, block.logits - positive, minus_infinity)
        )
    return tf.reduce_logsumexp(tf.concat(columns, axis=1), axis=1)
