"""One contrastive softmax: anchors of one side against their columns."""

import dataclasses
import math
from collections.abc import Sequence

import tensorflow as tf

from tf_samtone.losses.block import Block
from tf_samtone.losses.tiled_softmax import (
    SoftmaxStatistics,
    dense_statistics,
    tiled_statistics,
)

__all__ = ["Direction"]

# Below, all logits in memory are faster; above, tiles of this width are.
_LARGEST_DENSE = 2048
_TILE_SIZE = 256


@dataclasses.dataclass(frozen=True, kw_only=True)
class Direction:
    """A softmax per row over its positive and the negatives of some blocks.

    Attributes:
        anchors: float `[rows, dim]`.
        positives: float `[rows, dim]`.
        blocks: sequence of `Block`.
        scale: float scalar, 1 / temperature.
        margin: float. Taken off the positive.
        margin_is_inside: bool. Before the scale, not after it.
        label_smoothing: float in [0, 1).
        score_margin: float or `None`.
        tile_size: int, or `None` to choose by the number of columns.
    """

    anchors: tf.Tensor
    positives: tf.Tensor
    blocks: Sequence[Block]
    scale: tf.Tensor
    margin: float = 0.0
    margin_is_inside: bool = False
    label_smoothing: float = 0.0
    score_margin: float | None = None
    tile_size: int | None = None

    def loss(self) -> tf.Tensor:
        """Computes the smoothed negative log probability of the positive.

            loss_i = log(1 + sum_j exp(z_ij)) - e / C_i * sum_j z_ij - floor

        with z_ij the logit of negative j less that of the positive, C_i the
        number of negatives and e the label smoothing.

        Returns:
            float `[rows]`, at least 0; exactly 0 for a row without negatives.
        """
        statistics = self.statistics()
        if not self.label_smoothing:
            return statistics.excess
        return self._smoothed(statistics)

    def statistics(self) -> SoftmaxStatistics:
        """Computes what the negatives of each row amount to."""
        similarity = self.positive_similarity()
        margin = self.margin if self.margin_is_inside else 0.0
        reference = similarity - tf.constant(margin, similarity.dtype)
        if self.margin and not self.margin_is_inside:
            reference -= self.margin / self.scale
        ceiling = None
        if self.score_margin is not None:
            ceiling = tf.stop_gradient(similarity) + self.score_margin
        arguments = (self.anchors, reference, self.scale, self.blocks)
        tile_size = self._tile_size()
        if tile_size is None:
            return dense_statistics(*arguments, ceiling)
        return tiled_statistics(*arguments, tile_size, ceiling)

    def positive_similarity(self) -> tf.Tensor:
        """Returns float `[rows]`, the similarity of row and positive."""
        return tf.reduce_sum(self.anchors * self.positives, axis=-1)

    def masked(self) -> tf.Tensor:
        """Returns float `[rows]`, columns of other examples that are masked."""
        possible = [block.num_candidates() for block in self.blocks]
        return tf.add_n(possible) - self.statistics().count

    @property
    def has_same_tower(self) -> bool:
        """Whether the anchors' own tower gives negatives."""
        return any(block.is_same_tower for block in self.blocks)

    def same_tower_share(self) -> tf.Tensor:
        """Returns float `[rows]`, same-tower terms over the denominator."""
        others = [b for b in self.blocks if not b.is_same_tower]
        without = dataclasses.replace(self, blocks=others)
        excess = self.statistics().excess
        # 1 - (1 + others) / (1 + others + same tower), by their logarithms.
        return -tf.math.expm1(without.statistics().excess - excess)

    def _smoothed(self, statistics: SoftmaxStatistics) -> tf.Tensor:
        share = self.label_smoothing
        count = tf.maximum(statistics.count, 1.0)
        floor = -(1.0 - share) * math.log(1.0 - share)
        floor -= share * (math.log(share) - tf.math.log(count))
        loss = statistics.excess - share * statistics.total / count - floor
        # A row without negatives has no column to smooth over.
        return tf.where(statistics.count > 0, loss, tf.zeros_like(loss))

    def _tile_size(self) -> int | None:
        if self.tile_size is not None:
            return self.tile_size
        widths = [block.columns.shape[0] for block in self.blocks]
        if any(width is None or width > _LARGEST_DENSE for width in widths):
            return _TILE_SIZE
        return None
