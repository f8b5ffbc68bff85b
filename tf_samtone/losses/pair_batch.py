"""Everything that a loss knows of a batch of pairs."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_samtone.losses import _checks
from tf_samtone.losses.block import Block

__all__ = ["PairBatch"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairBatch:
    """Local rows, the columns of the global batch, and what links them.

    Made by `checked`, whose arguments are those of `per_example`.

    Attributes:
        queries: float `[rows, dim]`.
        documents: float `[rows, dim]`.
        all_queries: float `[columns, dim]`.
        all_documents: float `[columns, dim]`.
        row_index: int32 `[rows]`, the global index of each local row.
        row_ids: int64 vectors `[rows]`, queries' and documents' as far as
            known.
        column_ids: int64 vectors `[columns]`, in the same order.
        document_ids: int64 `[rows]` or `None`, for hard negatives.
        hard_negatives: float `[columns * k, dim]` or `None`.
        hard_negative_ids: int64 `[columns * k]` or `None`.
        hard_is_valid: bool `[columns * k]` or `None`.
        num_hard_negatives: int. k.
        positives: bool `[rows, columns]` or `None`.
        is_valid: bool `[rows]` or `None`.
        all_is_valid: bool `[columns]` or `None`.
        is_gathered: bool. Whether the global batch was given.
    """

    queries: tf.Tensor
    documents: tf.Tensor
    all_queries: tf.Tensor
    all_documents: tf.Tensor
    row_index: tf.Tensor
    row_ids: Sequence[tf.Tensor]
    column_ids: Sequence[tf.Tensor]
    document_ids: tf.Tensor | None
    hard_negatives: tf.Tensor | None
    hard_negative_ids: tf.Tensor | None
    hard_is_valid: tf.Tensor | None
    num_hard_negatives: int
    positives: tf.Tensor | None
    is_valid: tf.Tensor | None
    all_is_valid: tf.Tensor | None
    is_gathered: bool

    @classmethod
    def checked(
        cls,
        queries: Any,
        documents: Any,
        hard_negatives: Any = None,
        hard_negative_mask: Any = None,
        query_ids: Any = None,
        document_ids: Any = None,
        row_offset: Any = 0,
        all_queries: Any = None,
        all_documents: Any = None,
        all_query_ids: Any = None,
        all_document_ids: Any = None,
        hard_negative_ids: Any = None,
        positives: Any = None,
        is_valid: Any = None,
        all_is_valid: Any = None,
        mask_duplicates: bool = True,
    ) -> "PairBatch":
        """Checks and completes the arguments of `per_example`.

        Args:
            queries: float `[rows, dim]`, normalised.
            documents: float `[rows, dim]`; row i answers query i.
            hard_negatives: float `[columns, k, dim]` or `None`; k may be 0.
                Those of the global batch, in the order of its rows.
            hard_negative_mask: bool `[columns, k]` or `None`, true where the
                negative exists. What stands under it does not matter.
            query_ids: int64 `[rows]` or `None`. Equal ids are not negatives of
                each other; ignored if `mask_duplicates` is false.
            document_ids: int64 `[rows]` or `None`.
            row_offset: int. Global index of the first local row.
            all_queries: float `[columns, dim]`, the global batch. Defaults to
                `queries`.
            all_documents: float `[columns, dim]`. Defaults to `documents`.
            all_query_ids: int64 `[columns]`. Defaults to `query_ids`.
            all_document_ids: int64 `[columns]`. Defaults to `document_ids`.
            hard_negative_ids: int64 `[columns, k]` or `None`. A hard negative
                with the id of a row's document is no negative of that row;
                needs `document_ids`.
            positives: bool `[rows, columns]` or `None`. True where examples i
                and j are known not to be negatives of each other, in any
                block and direction: document j answers query i, say. The
                row's own positive always stays.
            is_valid: bool `[rows]` or `None`. False for padding rows, which
                have no loss and are nobody's negatives.
            all_is_valid: bool `[columns]`. Defaults to `is_valid`.
            mask_duplicates: bool. Whether ids are used.

        Raises:
            InvalidInputError: if shapes or dtypes do not fit together.
        """
        queries, documents = _checks.checked_pairs(queries, documents)
        all_queries, all_documents, is_gathered = _checks.checked_columns(
            queries, documents, all_queries, all_documents
        )
        _checks.check_row_offset(row_offset, queries, all_queries)
        is_valid, all_is_valid = _checks.checked_validity(
            is_valid, all_is_valid, queries, all_queries, is_gathered
        )
        kinds = {
            "query_ids": (query_ids, all_query_ids),
            "document_ids": (document_ids, all_document_ids),
        }
        row_ids, column_ids = _checks.checked_ids(
            kinds if mask_duplicates else {}, queries, all_queries, is_gathered
        )
        row_index = tf.range(tf.shape(queries)[0]) + tf.cast(
            row_offset, tf.int32
        )
        hard = _checks.checked_hard_negatives(
            hard_negatives, hard_negative_mask, hard_negative_ids, all_queries
        )
        has_document_ids = mask_duplicates and document_ids is not None
        if mask_duplicates and hard_negative_ids is not None:
            _checks.check_given("document_ids", document_ids)
        return cls(
            queries=_without_padding(queries, is_valid),
            documents=_without_padding(documents, is_valid),
            all_queries=_without_padding(all_queries, all_is_valid),
            all_documents=_without_padding(all_documents, all_is_valid),
            row_index=row_index,
            row_ids=row_ids,
            column_ids=column_ids,
            document_ids=row_ids[-1] if has_document_ids else None,
            **_flat_hard_negatives(hard, all_is_valid),
            positives=_checks.checked_positives(
                positives, queries, all_queries
            ),
            is_valid=is_valid,
            all_is_valid=all_is_valid,
            is_gathered=is_gathered,
        )

    def num_examples(self) -> tf.Tensor:
        """Returns float scalar, the valid examples of the global batch."""
        if self.all_is_valid is None:
            return tf.cast(tf.shape(self.all_queries)[0], self.queries.dtype)
        return tf.reduce_sum(tf.cast(self.all_is_valid, self.queries.dtype))

    def sides(self, side: str) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the local anchors of a side and their positives."""
        if side == "query":
            return self.queries, self.documents
        return self.documents, self.queries

    def other_tower_block(self, side: str) -> Block:
        """Returns the other examples' columns in the other tower."""
        is_query = side == "query"
        return self._block(self.all_documents if is_query else self.all_queries)

    def same_tower_block(self, side: str, weight: float = 1.0) -> Block:
        """Returns the other examples' columns in the anchors' own tower."""
        is_query = side == "query"
        return self._block(
            self.all_queries if is_query else self.all_documents,
            log_weight=math.log(weight),
            is_same_tower=True,
        )

    def without_ids(self) -> "PairBatch":
        """Returns the batch without ids and labels, only with padding."""
        return dataclasses.replace(
            self, row_ids=(), column_ids=(), positives=None
        )

    def hard_block(self, scope: str = "all") -> Block:
        """Returns the hard negatives, all of them or each row's own.

        Args:
            scope: str. `"all"`, `"own"` or `"others"`.
        """
        has_ids = (
            self.document_ids is not None and self.hard_negative_ids is not None
        )
        return Block(
            columns=self.hard_negatives,
            row_index=self.row_index,
            group_size=self.num_hard_negatives,
            scope=scope,
            row_ids=[self.document_ids] if has_ids else [],
            column_ids=[self.hard_negative_ids] if has_ids else [],
            is_valid=self.hard_is_valid,
        )

    def _block(self, columns: tf.Tensor, **options: Any) -> Block:
        return Block(
            columns=columns,
            row_index=self.row_index,
            row_ids=self.row_ids,
            column_ids=self.column_ids,
            excluded=self.positives,
            is_valid=self.all_is_valid,
            **options,
        )


def _without_padding(
    columns: tf.Tensor, is_valid: tf.Tensor | None
) -> tf.Tensor:
    """Zeroes padding, so that a NaN there reaches no gradient."""
    if is_valid is None:
        return columns
    return tf.where(is_valid[:, None], columns, tf.zeros_like(columns))


def _flat_hard_negatives(
    hard: tuple[tf.Tensor, tf.Tensor, tf.Tensor | None] | None,
    all_is_valid: tf.Tensor | None,
) -> dict[str, Any]:
    if hard is None:
        return {
            "hard_negatives": None,
            "hard_negative_ids": None,
            "hard_is_valid": None,
            "num_hard_negatives": 0,
        }
    vectors, mask, ids = hard
    num_hard_negatives = vectors.shape[1]
    if num_hard_negatives is None:
        num_hard_negatives = tf.shape(vectors)[1]
    if all_is_valid is not None:
        mask &= all_is_valid[:, None]
    vectors = tf.where(mask[:, :, None], vectors, tf.zeros_like(vectors))
    return {
        "hard_negatives": tf.reshape(vectors, [-1, vectors.shape[-1]]),
        "hard_negative_ids": None if ids is None else tf.reshape(ids, [-1]),
        "hard_is_valid": tf.reshape(mask, [-1]),
        "num_hard_negatives": num_hard_negatives,
    }
