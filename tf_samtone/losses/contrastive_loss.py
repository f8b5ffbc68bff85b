"""Base of the in-batch contrastive losses."""

import keras
import tensorflow as tf

from tf_samtone.losses import _checks
from tf_samtone.losses.direction import Direction
from tf_samtone.losses.learned_temperature import LearnedTemperature
from tf_samtone.losses.pair_batch import PairBatch

DIRECTION_REDUCTIONS = ("sum", "mean")
MARGIN_POSITIONS = ("inside", "outside")
HARD_NEGATIVES = ("all", "own")


class ContrastiveLoss(keras.losses.Loss):
    """In-batch softmax losses with a choice of blocks per direction.

    Subclasses say, through `same_tower_sides`, in which directions the other
    rows of the anchor's own tower join the denominator.

    Inside graphs nothing can be raised for the values of embeddings: NaN in
    them, or similarities beyond the range of float32, make the loss NaN or
    infinite, with every option and mask. They are never left out;
    `keras.callbacks.TerminateOnNaN` stops such a run.

    Args:
        temperature: float > 0, or `LearnedTemperature`. Divides every
            similarity. Defaults to `0.01`.
        bidirectional: bool. Adds the document-to-query direction. Defaults to
            `True`.
        direction_reduction: str. `"sum"` adds the two directions (t5x),
            `"mean"` halves the sum (sentence-transformers). Defaults to
            `"sum"`.
        mask_duplicates: bool. Drops columns whose query id or document id
            equals the row's, in every block. Defaults to `True`.
        margin: float >= 0. Taken off the positive. Defaults to `0.0`.
        margin_position: str. `"inside"` takes it off the similarity
            (tf-models), `"outside"` off the logit (t5x_retrieval): a factor
            1 / temperature apart, so a margin needs it said. Defaults to
            `None`.
        label_smoothing: float in [0, 1). Share of the target spread evenly
            over the negatives, less the entropy of that target, as in
            t5x_retrieval: the floor stays 0. Defaults to `0.0`.
        same_tower_weight: float > 0. Multiplies the exponentials of same-tower
            negatives; 1 is the paper. Defaults to `1.0`.
        hard_negatives: str. `"all"` hard negatives of the batch are columns of
            every query (t5x_retrieval), or only its `"own"`. They enter the
            query-to-document direction. Defaults to `"all"`.
        score_margin: float or `None`. Drops a column that is more similar than
            the positive by more than this: likely a positive that nobody
            labelled. Defaults to `None`, which drops none.
        tile_size: int or `None`. Columns per tile of the exact softmax;
            smaller needs less memory. `None` keeps all logits in memory up to
            2048 columns, and makes tiles of 256 above. Defaults to `None`.
        reduction: str. Over the batch; see `keras.losses.Loss`. Defaults to
            `"sum_over_batch_size"`.
        name: str.

    Raises:
        InvalidInputError: if an option is out of its range.
    """

    same_tower_sides: tuple[str, ...] = ()

    def __init__(
        self,
        temperature=0.01,
        *,
        bidirectional=True,
        direction_reduction="sum",
        mask_duplicates=True,
        margin=0.0,
        margin_position=None,
        label_smoothing=0.0,
        same_tower_weight=1.0,
        hard_negatives="all",
        score_margin=None,
        tile_size=None,
        reduction="sum_over_batch_size",
        name="contrastive",
    ):
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.temperature = _checks.checked_temperature(temperature)
        _checks.check_choice(
            "direction_reduction", direction_reduction, DIRECTION_REDUCTIONS
        )
        _checks.check_choice("hard_negatives", hard_negatives, HARD_NEGATIVES)
        _checks.check_number("margin", margin, least=0.0)
        if margin or margin_position is not None:
            _checks.check_choice(
                "margin_position", margin_position, MARGIN_POSITIONS
            )
        _checks.check_number(
            "label_smoothing", label_smoothing, least=0.0, below=1.0
        )
        _checks.check_number("same_tower_weight", same_tower_weight, above=0.0)
        if score_margin is not None:
            _checks.check_number("score_margin", score_margin)
        if tile_size is not None:
            _checks.check_whole("tile_size", tile_size)
        self.bidirectional = bool(bidirectional)
        self.direction_reduction = direction_reduction
        self.mask_duplicates = bool(mask_duplicates)
        self.margin = float(margin)
        self.margin_position = margin_position
        self.label_smoothing = float(label_smoothing)
        self.same_tower_weight = float(same_tower_weight)
        self.hard_negatives = hard_negatives
        self.score_margin = (
            None if score_margin is None else float(score_margin)
        )
        self.tile_size = tile_size

    @property
    def trainable_variables(self):
        """Keras variables that training changes: a learned temperature's."""
        if isinstance(self.temperature, LearnedTemperature):
            return self.temperature.trainable_variables
        return []

    def call(self, queries, documents):
        return self.per_example(queries, documents)

    def per_example(
        self,
        queries,
        documents,
        hard_negatives=None,
        hard_negative_mask=None,
        **batch,
    ):
        """Computes one loss per local row against the whole batch.

        Args:
            queries: float `[rows, dim]`, normalised. Row i of the local rows.
            documents: float `[rows, dim]`; row i answers query i.
            hard_negatives: float `[batch, k, dim]` or `None`. Defaults to
                `None`.
            hard_negative_mask: bool `[batch, k]` or `None`, true where the
                negative exists. Defaults to `None`, which is everywhere.
            **batch: everything else that is known of the batch; see
                `PairBatch`.

        Returns:
            float32 `[rows]` (float64 for float64 embeddings); 0 for a row that
            `is_valid` leaves out.

        Raises:
            InvalidInputError: if shapes or dtypes do not fit together.
        """
        pairs = PairBatch.checked(
            queries,
            documents,
            hard_negatives,
            hard_negative_mask,
            mask_duplicates=self.mask_duplicates,
            **batch,
        )
        # A row without negatives has loss 0 whatever its vectors hold; a row
        # that cannot be told apart from it must not pass for one.
        own = tf.reduce_sum(pairs.queries * pairs.documents, axis=1)
        loss = self._loss(pairs)
        nan = tf.constant(float("nan"), loss.dtype)
        loss = tf.where(tf.math.is_finite(own), loss, nan)
        if pairs.is_valid is None:
            return loss
        return tf.where(pairs.is_valid, loss, tf.zeros_like(loss))

    def count_masked(self, pairs):
        """Counts the negatives that each local row lost to masks.

        Args:
            pairs: `PairBatch`.

        Returns:
            float `[rows]`: over all directions and blocks, how many columns of
            other valid examples are not negatives of the row.
        """
        return tf.add_n([d.masked() for d in self._directions(pairs)])

    def same_tower_share(self, pairs):
        """Computes the share of the denominators from same-tower negatives.

        Args:
            pairs: `PairBatch`.

        Returns:
            float `[rows]` in [0, 1], the mean over the directions that have
            same-tower negatives; 0 without any.
        """
        shares = [
            direction.same_tower_share()
            for direction in self._directions(pairs)
            if direction.has_same_tower
        ]
        if not shares:
            return tf.zeros_like(pairs.queries[:, 0])
        return tf.add_n(shares) / float(len(shares))

    def _loss(self, pairs):
        losses = [d.loss() for d in self._directions(pairs)]
        if self.direction_reduction == "mean":
            return tf.add_n(losses) / float(len(losses))
        return tf.add_n(losses)

    def _directions(self, pairs):
        """Returns the softmaxes that make up the loss."""
        sides = ("query", "document") if self.bidirectional else ("query",)
        return [
            self._direction(
                pairs,
                side,
                same_tower=side in self.same_tower_sides,
                with_hard_negatives=side == "query",
            )
            for side in sides
        ]

    def _direction(self, pairs, side, *, same_tower, with_hard_negatives):
        blocks = [pairs.other_tower_block(side)]
        if same_tower:
            blocks.append(pairs.same_tower_block(side, self.same_tower_weight))
        if with_hard_negatives and pairs.hard_negatives is not None:
            blocks.append(pairs.hard_block(self.hard_negatives))
        return self._softmax(pairs, side, blocks)

    def _softmax(self, pairs, side, blocks):
        anchors, positives = pairs.sides(side)
        return Direction(
            anchors=anchors,
            positives=positives,
            blocks=blocks,
            scale=self._scale(anchors.dtype),
            margin=self.margin,
            margin_is_inside=self.margin_position == "inside",
            label_smoothing=self.label_smoothing,
            score_margin=self.score_margin,
            tile_size=self.tile_size,
        )

    def _scale(self, dtype):
        if isinstance(self.temperature, LearnedTemperature):
            return tf.cast(1.0 / self.temperature.value(), dtype)
        return tf.constant(1.0 / self.temperature, dtype)

    def get_config(self):
        config = super().get_config()
        config.pop("dtype", None)
        temperature = self.temperature
        if isinstance(temperature, LearnedTemperature):
            temperature = keras.saving.serialize_keras_object(temperature)
        config.update(
            temperature=temperature,
            bidirectional=self.bidirectional,
            direction_reduction=self.direction_reduction,
            mask_duplicates=self.mask_duplicates,
            margin=self.margin,
            margin_position=self.margin_position,
            label_smoothing=self.label_smoothing,
            same_tower_weight=self.same_tower_weight,
            hard_negatives=self.hard_negatives,
            score_margin=self.score_margin,
            tile_size=self.tile_size,
        )
        return config

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        if isinstance(config.get("temperature"), dict):
            config["temperature"] = keras.saving.deserialize_keras_object(
                config["temperature"]
            )
        return cls(**config)
