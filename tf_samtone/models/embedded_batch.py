"""One batch of pairs as embeddings, local rows and global columns."""

import dataclasses
from typing import Any

import tensorflow as tf

from tf_samtone.distribution import gather_rows

__all__ = ["EmbeddedBatch"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class EmbeddedBatch:
    """Embeddings of this replica's rows and all that the loss needs beside.

    Attributes:
        queries: float32 `[rows, dim]`.
        documents: float32 `[rows, dim]`.
        loss_arguments: keyword arguments of `ContrastiveLoss.per_example`,
            gathered over the replicas.
        num_rows: float32 scalar, valid rows of this replica.
        num_columns: float32 scalar, valid rows of all replicas.
    """

    queries: tf.Tensor
    documents: tf.Tensor
    loss_arguments: dict[str, Any]
    num_rows: tf.Tensor
    num_columns: tf.Tensor

    @classmethod
    def from_features(
        cls, model: Any, features: dict[str, Any], training: bool
    ) -> "EmbeddedBatch":
        """Encodes a feature dict and gathers the global batch.

        Args:
            model: `DualEncoder`.
            features: dict with `queries`, `documents`, and optionally
                `query_ids`, `document_ids`, `is_valid` `[rows]`,
                `hard_negatives` (token features `[rows, k, seq]`),
                `hard_negative_mask` and `hard_negative_ids` `[rows, k]`.
            training: bool. Whether dropout is on.
        """
        queries, documents = model(features, training=training)
        hard_negatives = _hard_negatives(model, features, training)
        # The order of the collectives, the same on every replica: documents,
        # queries, ids, then hard negatives, each as a whole. Gathering
        # [documents | hard negatives] of each replica would interleave them.
        local = {
            "all_documents": documents,
            "all_queries": queries,
            "all_query_ids": features.get("query_ids"),
            "all_document_ids": features.get("document_ids"),
            "all_is_valid": features.get("is_valid"),
            "hard_negatives": hard_negatives,
            "hard_negative_mask": features.get("hard_negative_mask"),
            "hard_negative_ids": features.get("hard_negative_ids"),
        }
        gathered, row_offset = gather_rows(list(local.values()))
        arguments = dict(zip(local, gathered, strict=True))
        for name in ("query_ids", "document_ids", "is_valid"):
            arguments[name] = features.get(name)
        return cls(
            queries=queries,
            documents=documents,
            loss_arguments={**arguments, "row_offset": row_offset},
            num_rows=_count(queries, arguments["is_valid"]),
            num_columns=_count(
                arguments["all_queries"], arguments["all_is_valid"]
            ),
        )

    def labels_and_scores(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns float32 `[rows, columns]` twice, for in-batch metrics."""
        documents = self.loss_arguments["all_documents"]
        scores = tf.matmul(self.queries, documents, transpose_b=True)
        rows = tf.range(tf.shape(scores)[0]) + self.loss_arguments["row_offset"]
        return tf.one_hot(rows, tf.shape(scores)[1]), scores


def _hard_negatives(
    model: Any, features: dict[str, Any], training: bool
) -> tf.Tensor | None:
    """Returns float32 `[rows, k, dim]`, or `None` without hard negatives."""
    tokens = features.get("hard_negatives")
    if tokens is None:
        return None
    shape = tf.shape(tokens["token_ids"])
    flat = {
        name: tf.reshape(value, [-1, value.shape[-1] or shape[-1]])
        for name, value in tokens.items()
    }
    embeddings = model.document_tower(flat, training=training)
    k = tokens["token_ids"].shape[1]
    rows = tokens["token_ids"].shape[0]
    return tf.reshape(
        embeddings,
        [rows or shape[0], k if k is not None else shape[1], model.dim],
    )


def _count(embeddings: tf.Tensor, is_valid: tf.Tensor | None) -> tf.Tensor:
    if is_valid is None:
        return tf.cast(tf.shape(embeddings)[0], tf.float32)
    return tf.reduce_sum(tf.cast(is_valid, tf.float32))
