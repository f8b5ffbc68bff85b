"""Base of the in-batch contrastive losses."""

import keras
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import _checks, functional, masks

DIRECTION_REDUCTIONS = ("sum", "mean")


class ContrastiveLoss(keras.losses.Loss):
    """In-batch softmax losses with a choice of blocks per direction.

    Subclasses say, through `same_tower_sides`, in which directions the other
    rows of the anchor's own tower join the denominator.

    Args:
        temperature: float > 0. Divides every similarity.
        bidirectional: bool. Adds the document-to-query direction.
        direction_reduction: str. `"sum"` adds the two directions (t5x),
            `"mean"` halves the sum (sentence-transformers).
        mask_duplicates: bool. Drops columns whose query id or document id
            equals the row's, in every block.
        reduction: str. Over the batch; see `keras.losses.Loss`.
        name: str.
    """

    same_tower_sides: tuple[str, ...] = ()

    def __init__(
        self,
        temperature,
        bidirectional,
        direction_reduction,
        mask_duplicates,
        reduction,
        name,
    ):
        super().__init__(name=name, reduction=reduction, dtype="float32")
        self.temperature = _checks.checked_temperature(temperature)
        if direction_reduction not in DIRECTION_REDUCTIONS:
            raise InvalidInputError(
                "Expected `direction_reduction` to be one of "
                f"{DIRECTION_REDUCTIONS}. Received: "
                f"direction_reduction={direction_reduction!r}. Use 'sum' for "
                "the papers' loss."
            )
        self.bidirectional = bool(bidirectional)
        self.direction_reduction = direction_reduction
        self.mask_duplicates = bool(mask_duplicates)

    def call(self, queries, documents):
        return self.per_example(queries, documents)

    def per_example(
        self,
        queries,
        documents,
        hard_negatives=None,
        hard_negative_mask=None,
        query_ids=None,
        document_ids=None,
        row_offset=0,
        all_queries=None,
        all_documents=None,
        all_query_ids=None,
        all_document_ids=None,
    ):
        """Computes one loss per local row against the whole batch.

        Args:
            queries: float `[rows, dim]`, normalised. Row i of the local rows.
            documents: float `[rows, dim]`; row i answers query i.
            hard_negatives: float `[columns, k, dim]` or `None`. All hard
                negatives of the global batch are columns of the
                query-to-document direction.
            hard_negative_mask: bool `[columns, k]` or `None`, true where the
                negative exists.
            query_ids: int64 `[rows]` or `None`. Equal ids are not negatives of
                each other; ignored if `mask_duplicates` is false.
            document_ids: int64 `[rows]` or `None`.
            row_offset: int. Global index of the first local row.
            all_queries: float `[columns, dim]`, the global batch. Defaults to
                `queries`.
            all_documents: float `[columns, dim]`. Defaults to `documents`.
            all_query_ids: int64 `[columns]`. Defaults to `query_ids`.
            all_document_ids: int64 `[columns]`. Defaults to `document_ids`.

        Returns:
            float32 `[rows]`.

        Raises:
            InvalidInputError: if shapes or dtypes do not fit together.
        """
        queries = _checks.checked_embeddings("queries", queries)
        documents = _checks.checked_embeddings("documents", documents)
        _checks.check_pairs(queries, documents)
        all_queries, all_documents, is_gathered = _checks.checked_columns(
            queries, documents, all_queries, all_documents
        )
        kinds = {
            "query_ids": (query_ids, all_query_ids),
            "document_ids": (document_ids, all_document_ids),
        }
        row_ids, column_ids = _checks.checked_ids(
            kinds if self.mask_duplicates else {},
            queries,
            all_queries,
            is_gathered,
        )
        is_self = masks.self_mask(
            tf.shape(queries)[0], tf.shape(all_queries)[0], row_offset
        )
        is_negative = masks.negative_mask(is_self, row_ids, column_ids)
        loss = self._direction(
            "query", queries, documents, all_queries, all_documents,
            is_negative, hard_negatives, hard_negative_mask,
        )  # fmt: skip
        if not self.bidirectional:
            return loss
        loss += self._direction(
            "document", documents, queries, all_documents, all_queries,
            is_negative, None, None,
        )  # fmt: skip
        return loss / 2.0 if self.direction_reduction == "mean" else loss

    def _direction(
        self,
        side,
        anchors,
        positives,
        all_anchors,
        all_positives,
        is_negative,
        hard_negatives,
        hard_negative_mask,
    ):
        """Returns float32 `[rows]` for the anchors of one side."""
        columns = [all_positives]
        if side in self.same_tower_sides:
            columns.append(all_anchors)
        blocks = [self._block(anchors, c, is_negative) for c in columns]
        if hard_negatives is not None:
            blocks.append(
                self._hard_block(anchors, hard_negatives, hard_negative_mask)
            )
        positive = functional.positive_similarities(anchors, positives)
        return functional.contrastive_softmax_loss(
            positive, blocks, self.temperature
        )

    def _block(self, anchors, columns, mask):
        similarities = tf.matmul(anchors, columns, transpose_b=True)
        return functional.Block(similarities, mask)

    def _hard_block(self, anchors, hard_negatives, mask):
        hard_negatives, mask = _checks.checked_hard_negatives(
            hard_negatives, mask, anchors
        )
        # A value under the mask must not matter, not even a NaN.
        hard_negatives = tf.where(mask[:, :, None], hard_negatives, 0.0)
        columns = tf.reshape(hard_negatives, [-1, tf.shape(anchors)[-1]])
        flat_mask = tf.reshape(mask, [1, -1])
        rows = tf.shape(anchors)[0]
        return self._block(anchors, columns, tf.repeat(flat_mask, rows, axis=0))

    def get_config(self):
        config = super().get_config()
        config.pop("dtype", None)
        config.update(
            temperature=self.temperature,
            bidirectional=self.bidirectional,
            direction_reduction=self.direction_reduction,
            mask_duplicates=self.mask_duplicates,
        )
        return config
