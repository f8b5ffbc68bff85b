"""Triplet loss with same-tower negatives."""

import keras
import tensorflow as tf

from tf_samtone.losses import _checks
from tf_samtone.losses.contrastive_loss import ContrastiveLoss
from tf_samtone.losses.samtone_loss import SAME_TOWER_SIDES

NEGATIVES = ("hardest", "mean", "active")
UNUSED = {
    "label_smoothing": 0.0,
    "margin_position": None,
    "same_tower_weight": 1.0,
    "temperature": 1.0,
    "tile_size": None,
}


@keras.saving.register_keras_serializable(package="tf_samtone")
class TripletLoss(ContrastiveLoss):
    r"""Hinge loss over in-batch, same-tower and hard negatives.

        h_ix = max(0, margin - s(q_i, p_i) + x)

    for every similarity x of row i to a negative: the other documents, the
    other queries (`same_tower`), the hard negatives. `"hardest"` takes the
    largest h of a row, `"mean"` their mean, and `"active"` the sum of all h of
    the batch over the number that are above 0. The document direction swaps
    the roles. The SamToNe paper names a triplet loss with same-tower negatives
    as future work; this definition is ours. There is no temperature.

    All similarities of the batch are held in memory. For rows of a larger batch
    (`all_queries`), `"active"` counts over the replicas of a strategy; without
    one it counts the local rows alone.

    >>> loss = TripletLoss(margin=0.2, bidirectional=False)
    >>> queries = [[1.0, 0.0], [0.0, 1.0]]
    >>> documents = [[0.8, 0.6], [0.0, 1.0]]
    >>> print(f"{float(loss(queries, documents)):.4f}")
    0.0000

    Use it with `compile`:

    >>> # model.compile(optimizer="adam", loss=TripletLoss())

    Args:
        margin: float > 0, in units of similarity. Defaults to `0.2`.
        negatives: str. `"hardest"`, `"mean"` or `"active"`. Defaults to
            `"hardest"`.
        same_tower: str or `None`. `"query"`, `"document"`, `"both"`, or `None`
            for none. Defaults to `"query"`.
        name: str. Defaults to `"triplet"`.
        **options: see `ContrastiveLoss`: `bidirectional`,
            `direction_reduction`, `mask_duplicates`, `hard_negatives`,
            `score_margin` and `reduction`.

    Call arguments:
        queries: float `[batch, dim]`, unit vectors.
        documents: float `[batch, dim]`, row i answers query i.

    Returns:
        float32 scalar after reduction; `per_example` returns `[batch]`. A row
        without negatives has loss 0.

    Raises:
        InvalidInputError: if an argument is out of its range, or shapes do not
            fit.

    Reference:
        Schroff et al., 2015, FaceNet: A Unified Embedding for Face Recognition
        and Clustering, https://arxiv.org/abs/1503.03832
    """

    def __init__(
        self,
        margin=0.2,
        negatives="hardest",
        same_tower="query",
        *,
        name="triplet",
        **options,
    ):
        # The parent's margin is one of a softmax, and so is its temperature.
        options.setdefault("temperature", UNUSED["temperature"])
        super().__init__(name=name, **options)
        _checks.check_unused(
            self,
            "Remove it: it belongs to a softmax, and this is a hinge.",
            **UNUSED,
        )
        _checks.check_number("margin", margin, above=0.0)
        _checks.check_choice("negatives", negatives, NEGATIVES)
        _checks.check_choice(
            "same_tower", same_tower, (*SAME_TOWER_SIDES, None)
        )
        _checks.check_directions(same_tower, self.bidirectional)
        self.hinge_margin = float(margin)
        self.negatives = negatives
        self.same_tower = same_tower
        self.same_tower_sides = SAME_TOWER_SIDES.get(same_tower, ())

    def _loss(self, pairs):
        losses = [self._hinge_loss(d, pairs) for d in self._directions(pairs)]
        total = tf.add_n(losses)
        if self.direction_reduction == "mean":
            total /= float(len(losses))
        return total

    def _hinge_loss(self, direction, pairs):
        hinges, masks = self._hinges(direction)
        total = tf.reduce_sum(hinges, axis=1)
        if self.negatives == "hardest":
            # The maximum overlooks a NaN under XLA; the sum does not.
            hardest = tf.reduce_max(hinges, axis=1)
            return tf.where(tf.math.is_nan(total), total, hardest)
        if self.negatives == "mean":
            return total / tf.maximum(tf.reduce_sum(masks, axis=1), 1.0)
        is_active = hinges > 0
        if pairs.is_valid is not None:
            is_active &= pairs.is_valid[:, None]
        active = tf.reduce_sum(tf.cast(is_active, hinges.dtype))
        context = tf.distribute.get_replica_context()
        if pairs.is_gathered and context is not None:
            active = context.all_reduce(tf.distribute.ReduceOp.SUM, active)
        # Scaled so that the mean over the rows is the sum over the active.
        return total * pairs.num_examples() / tf.maximum(active, 1.0)

    def _hinges(self, direction):
        """Returns float `[rows, 1 + columns]` twice: h, and 1 if it counts."""
        positive = direction.positive_similarity()[:, None]
        hinges, masks = [tf.zeros_like(positive)], [tf.zeros_like(positive)]
        for block in direction.blocks:
            similarity = tf.matmul(
                direction.anchors, block.columns, transpose_b=True
            )
            keep = block.mask(0, None)
            # Neither comparison is true of NaN, which thus stays to be seen.
            if self.score_margin is not None:
                keep &= ~(similarity > positive + self.score_margin)
            hinge = self.hinge_margin - positive + similarity
            keep_hinge = keep & ~(hinge <= 0)
            hinges.append(tf.where(keep_hinge, hinge, tf.zeros_like(hinge)))
            masks.append(tf.cast(keep, hinge.dtype))
        return tf.concat(hinges, axis=1), tf.concat(masks, axis=1)

    def get_config(self):
        config = super().get_config()
        for name in UNUSED:
            config.pop(name)
        config.update(
            margin=self.hinge_margin,
            negatives=self.negatives,
            same_tower=self.same_tower,
        )
        return config
