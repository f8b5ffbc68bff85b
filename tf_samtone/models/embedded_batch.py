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
    def gathered(
        cls, embeddings: dict[str, tf.Tensor], features: dict[str, Any]
    ) -> "EmbeddedBatch":
        """Gathers the global batch from the local embeddings.

        Args:
            embeddings: as of `encode_pairs`.
            features: dict with, optionally, `query_ids`, `document_ids`,
                `is_valid` `[rows]`, `hard_negative_mask` and
                `hard_negative_ids` `[rows, k]`.
        """
        # The order of the collectives, the same on every replica: documents,
        # queries, ids, then hard negatives, each as a whole. Gathering
        # [documents | hard negatives] of each replica would interleave them.
        local = {
            "all_documents": embeddings["documents"],
            "all_queries": embeddings["queries"],
            "all_query_ids": features.get("query_ids"),
            "all_document_ids": features.get("document_ids"),
            "all_is_valid": features.get("is_valid"),
            "hard_negatives": embeddings.get("hard_negatives"),
            "hard_negative_mask": features.get("hard_negative_mask"),
            "hard_negative_ids": features.get("hard_negative_ids"),
        }
        gathered, row_offset = gather_rows(list(local.values()))
        arguments = dict(zip(local, gathered, strict=True))
        for name in ("query_ids", "document_ids", "is_valid"):
            arguments[name] = features.get(name)
        return cls(
            queries=embeddings["queries"],
            documents=embeddings["documents"],
            loss_arguments={**arguments, "row_offset": row_offset},
            num_rows=_count(embeddings["queries"], arguments["is_valid"]),
            num_columns=_count(
                arguments["all_queries"], arguments["all_is_valid"]
            ),
        )

    def total_loss(self, loss: Any) -> tf.Tensor:
        """Returns the sum of the losses of this replica's valid rows.

        Args:
            loss: `ContrastiveLoss`.
        """
        return tf.reduce_sum(
            loss.per_example(
                self.queries, self.documents, **self.loss_arguments
            )
        )

    def labels_and_scores(self) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns float32 `[rows, columns]` twice, for in-batch metrics."""
        documents = self.loss_arguments["all_documents"]
        scores = tf.matmul(self.queries, documents, transpose_b=True)
        rows = tf.range(tf.shape(scores)[0]) + self.loss_arguments["row_offset"]
        return tf.one_hot(rows, tf.shape(scores)[1]), scores


def _count(embeddings: tf.Tensor, is_valid: tf.Tensor | None) -> tf.Tensor:
    if is_valid is None:
        return tf.cast(tf.shape(embeddings)[0], tf.float32)
    return tf.reduce_sum(tf.cast(is_valid, tf.float32))
