"""Exact contrastive softmax over blocks of columns.

Every softmax loss of this package is a choice of blocks per direction. A block
is a matrix of similarities `[rows, columns]` with a boolean mask of the columns
that take part; the positive of a row stands apart, so that it is counted once
and never masked.
"""

from typing import NamedTuple

import tensorflow as tf

__all__ = ["Block", "contrastive_softmax_loss", "positive_similarities"]


class Block(NamedTuple):
    """One block of the denominator.

    Attributes:
        similarities: float32 `[rows, columns]`.
        mask: bool `[rows, columns]`, true where the column is a negative.
    """

    similarities: tf.Tensor
    mask: tf.Tensor


def positive_similarities(anchors, positives):
    """Returns float32 `[rows]`, the similarity of each row to its positive."""
    return tf.reduce_sum(anchors * positives, axis=-1)


def contrastive_softmax_loss(positive, blocks, temperature):
    """Computes the negative log probability of the positive, row by row.

        loss_i = log( 1 + sum_blocks sum_{j in mask_i} exp((s_ij - s_ii) / t) )

    Args:
        positive: float32 `[rows]`, similarity to the positive.
        blocks: sequence of `Block`.
        temperature: float > 0.

    Returns:
        float32 `[rows]`, at least 0; exactly 0 for a row without negatives.
    """
    # Relative to the positive, whose own term is then exp(0), and before the
    # division: at a temperature of 0.01 logits are near 100, and the usual
    # log(sum) - logit would lose most digits of a small loss and its gradient.
    positive = positive[:, None]
    columns = [tf.zeros_like(positive)]
    for block in blocks:
        logits = (block.similarities - positive) / temperature
        # `where` and -inf, not a large negative number: exact in any dtype,
        # and the zero of the positive keeps every row's maximum finite.
        minus_infinity = tf.constant(-float("inf"), logits.dtype)
        columns.append(tf.where(block.mask, logits, minus_infinity))
    return tf.reduce_logsumexp(tf.concat(columns, axis=1), axis=1)
