"""Exact statistics of a contrastive softmax, one tile of columns at a time."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tf_samtone.losses.block import Block

__all__ = ["SoftmaxStatistics", "dense_statistics", "tiled_statistics"]


class SoftmaxStatistics(NamedTuple):
    """What the losses need to know of the negatives of each row.

    Logits are relative to the positive's, z_ij = (s_ij - r_i) / t.

    Attributes:
        excess: float `[rows]`, log(1 + sum_j exp(z_ij)).
        total: float `[rows]`, sum_j z_ij.
        count: float `[rows]`, number of negatives; no gradient.
    """

    excess: tf.Tensor
    total: tf.Tensor
    count: tf.Tensor


def dense_statistics(
    anchors: tf.Tensor,
    reference: tf.Tensor,
    scale: tf.Tensor,
    blocks: Sequence[Block],
    ceiling: tf.Tensor | None = None,
) -> SoftmaxStatistics:
    """Computes the statistics with all logits in memory.

    Args:
        anchors: float `[rows, dim]`.
        reference: float `[rows]`, the positive's similarity r_i, less a margin.
        scale: float scalar, 1 / t.
        blocks: sequence of `Block`.
        ceiling: float `[rows]` or `None`. Columns more similar than this are
            no negatives.

    Returns:
        `SoftmaxStatistics`.
    """
    logits, count = [tf.zeros_like(reference)[:, None]], 0.0
    total = tf.zeros_like(reference)
    for block in blocks:
        similarity = tf.matmul(anchors, block.columns, transpose_b=True)
        keep = _negatives(block, 0, None, similarity, ceiling)
        z = (similarity - reference[:, None]) * scale + block.log_weight
        logits.append(tf.where(keep, z, _minus_infinity(z)))
        total += tf.reduce_sum(tf.where(keep, z, tf.zeros_like(z)), axis=1)
        count += tf.reduce_sum(tf.cast(keep, z.dtype), axis=1)
    logits = tf.concat(logits, axis=1)
    highest = tf.stop_gradient(tf.reduce_max(logits, axis=1))
    rest = tf.reduce_sum(tf.exp(logits[:, 1:] - highest[:, None]), axis=1)
    return SoftmaxStatistics(_excess(highest, rest), total, count)


def tiled_statistics(
    anchors: tf.Tensor,
    reference: tf.Tensor,
    scale: tf.Tensor,
    blocks: Sequence[Block],
    tile_size: int,
    ceiling: tf.Tensor | None = None,
) -> SoftmaxStatistics:
    """Computes the same in memory O(rows * (dim + tile_size)), exactly.

    Forward, a running maximum and a rescaled sum pass over the tiles, and only
    one number per row is kept. Backward, each tile's logits are computed
    again. Arguments are those of `dense_statistics`, and:

    Args:
        anchors: see `dense_statistics`.
        reference: see `dense_statistics`.
        scale: see `dense_statistics`.
        blocks: see `dense_statistics`.
        tile_size: int. Columns per tile.
        ceiling: see `dense_statistics`.

    Reference:
        Milakov and Gimelshein, 2018, Online normalizer calculation for
        softmax, https://arxiv.org/abs/1805.02867; Cheng et al., 2024, Breaking
        the Memory Barrier, https://arxiv.org/abs/2410.17243
    """
    blocks = [block.padded(tile_size) for block in blocks]

    @tf.custom_gradient
    def statistics(
        anchors: tf.Tensor,
        reference: tf.Tensor,
        scale: tf.Tensor,
        *columns: tf.Tensor,
    ) -> Any:
        rows = _Rows(anchors, reference, scale, ceiling, tile_size)
        # The positive's logit is 0, so no row's maximum is -inf.
        zero = tf.zeros_like(reference)
        state = (zero, zero, zero, zero)
        for block, matrix in zip(blocks, columns, strict=True):
            state = rows.accumulate(block, matrix, state)
        highest, rest, total, count = state
        excess = _excess(highest, rest)

        def gradient(*upstream: tf.Tensor) -> Any:
            return rows.gradients(blocks, columns, excess, *upstream[:2])

        return (excess, total, count), gradient

    matrices = [block.columns for block in blocks]
    return SoftmaxStatistics(*statistics(anchors, reference, scale, *matrices))


class _Rows(NamedTuple):
    """The rows of a direction, against which tiles of columns are held."""

    anchors: tf.Tensor
    reference: tf.Tensor
    scale: tf.Tensor
    ceiling: tf.Tensor | None
    tile_size: int

    def accumulate(
        self, block: Block, matrix: tf.Tensor, state: tuple[tf.Tensor, ...]
    ) -> tuple[tf.Tensor, ...]:
        """Passes the tiles of one block into the running statistics."""

        def step(tile: tf.Tensor, *state: tf.Tensor) -> tuple[tf.Tensor, ...]:
            highest, rest, total, count = state
            _, z, keep = self._logits(block, matrix, tile)
            masked = tf.where(keep, z, _minus_infinity(z))
            new_highest = tf.maximum(highest, tf.reduce_max(masked, axis=1))
            rest *= tf.exp(highest - new_highest)
            rest += tf.reduce_sum(tf.exp(masked - new_highest[:, None]), axis=1)
            total += tf.reduce_sum(tf.where(keep, z, tf.zeros_like(z)), axis=1)
            count += tf.reduce_sum(tf.cast(keep, z.dtype), axis=1)
            return tile + 1, new_highest, rest, total, count

        return self._loop(matrix, step, state)

    def gradients(
        self,
        blocks: Sequence[Block],
        columns: Sequence[tf.Tensor],
        excess: tf.Tensor,
        d_excess: tf.Tensor,
        d_total: tf.Tensor,
    ) -> tuple[tf.Tensor, ...]:
        """Returns the gradients of anchors, reference, scale and columns."""
        zeros = (
            tf.zeros_like(self.anchors),
            tf.zeros_like(self.reference),
            tf.zeros_like(self.scale),
        )
        state, d_columns = zeros, []
        for block, matrix in zip(blocks, columns, strict=True):
            state, d_matrix = self._block_gradient(
                block, matrix, excess, d_excess, d_total, state
            )
            d_columns.append(d_matrix)
        return (*state, *d_columns)

    def _block_gradient(
        self,
        block: Block,
        matrix: tf.Tensor,
        excess: tf.Tensor,
        d_excess: tf.Tensor,
        d_total: tf.Tensor,
        state: tuple[tf.Tensor, ...],
    ) -> tuple[tuple[tf.Tensor, ...], tf.Tensor]:
        tiles = tf.TensorArray(
            matrix.dtype,
            size=self._num_tiles(matrix),
            element_shape=[self.tile_size, matrix.shape[1]],
        )

        def step(
            tile: tf.Tensor,
            d_anchors: tf.Tensor,
            d_reference: tf.Tensor,
            d_scale: tf.Tensor,
            d_tiles: tf.TensorArray,
        ) -> tuple[Any, ...]:
            part, z, keep = self._logits(block, matrix, tile)
            # Probabilities against the finished normaliser; exactly 0 where
            # masked, whatever stands there.
            weights = tf.exp(z - excess[:, None]) * d_excess[:, None]
            weights += d_total[:, None]
            weights = tf.where(keep, weights, tf.zeros_like(weights))
            d_anchors += tf.matmul(weights, part) * self.scale
            d_reference -= tf.reduce_sum(weights, axis=1) * self.scale
            weighted = weights * (z - block.log_weight) / self.scale
            d_scale += tf.reduce_sum(
                tf.where(keep, weighted, tf.zeros_like(weighted))
            )
            d_part = tf.matmul(weights, self.anchors, transpose_a=True)
            d_tiles = d_tiles.write(tile, d_part * self.scale)
            return tile + 1, d_anchors, d_reference, d_scale, d_tiles

        *state, tiles = self._loop(matrix, step, (*state, tiles))
        d_matrix = tf.reshape(tiles.stack(), tf.shape(matrix))
        return tuple(state), d_matrix

    def _logits(
        self, block: Block, matrix: tf.Tensor, tile: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Returns the columns, logits and mask of one tile."""
        start = tile * self.tile_size
        part = tf.slice(matrix, [start, 0], [self.tile_size, -1])
        similarity = tf.matmul(self.anchors, part, transpose_b=True)
        keep = _negatives(
            block, start, self.tile_size, similarity, self.ceiling
        )
        z = (similarity - self.reference[:, None]) * self.scale
        return part, z + block.log_weight, keep

    def _num_tiles(self, matrix: tf.Tensor) -> tf.Tensor | int:
        if matrix.shape[0] is not None:
            return matrix.shape[0] // self.tile_size
        return tf.shape(matrix)[0] // self.tile_size

    def _loop(self, matrix: tf.Tensor, step: Any, state: Any) -> Any:
        count = self._num_tiles(matrix)
        _, *state = tf.while_loop(
            lambda tile, *_: tile < count,
            step,
            (tf.constant(0), *state),
            # One tile in memory at a time, not ten.
            parallel_iterations=1,
            maximum_iterations=count,
        )
        return tuple(state)


def _excess(highest: tf.Tensor, rest: tf.Tensor) -> tf.Tensor:
    """Returns log(1 + sum_j exp(z_ij)) of sum_j exp(z_ij - highest_i)."""
    # Exact for small losses too: log1p(rest) where the positive is highest.
    return highest + tf.math.log1p(tf.math.expm1(-highest) + rest)


def _negatives(
    block: Block,
    start: tf.Tensor | int,
    size: int | None,
    similarity: tf.Tensor,
    ceiling: tf.Tensor | None,
) -> tf.Tensor:
    keep = block.mask(start, size)
    if ceiling is None:
        return keep
    # Not `<=`, which would drop a NaN and with it the sign that one is there.
    return keep & tf.logical_not(similarity > ceiling[:, None])


def _minus_infinity(like: tf.Tensor) -> tf.Tensor:
    # With `where`, not a large negative number added: exact in any dtype.
    return tf.constant(-float("inf"), like.dtype)
