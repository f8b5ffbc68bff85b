"""From the row numbers of a batch to its features."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_samtone.data._balanced_groups import balanced_groups
from tf_samtone.data._hard_negatives import HardNegatives
from tf_samtone.data._token_layout import TokenLayout
from tf_samtone.data._token_store import TokenStore
from tf_samtone.text import TextPreprocessor


class BatchFeatures:
    """Tokenizes all texts once; a call gathers and lays out one batch.

    Args:
        queries: list of strings.
        documents: list of strings.
        hard_negatives: `HardNegatives` or `None`. They share one store with
            the documents, which they often are.
        query_ids: int64 `[pairs]`.
        document_ids: int64 `[pairs]`.
        preprocessors: dict of `TextPreprocessor`, keys `"queries"` and
            `"documents"`.
        layouts: dict of `TokenLayout`, keys `"queries"`, `"documents"`
            and `"hard_negatives"`.
        batch_size: int.
        groups: int. With more than one, the pairs of a batch are dealt to
            groups with about equally many document tokens.
        marks_padding: bool. Whether batches hold `"is_valid"`.

    Call arguments:
        rows: int64 `[batch_size]`; a negative number is a padding place that
            repeats row `~number`.

    Returns:
        dict of features, see `training_dataset`.
    """

    def __init__(
        self,
        queries: Sequence[str],
        documents: Sequence[str],
        hard_negatives: HardNegatives | None,
        *,
        query_ids: np.ndarray,
        document_ids: np.ndarray,
        preprocessors: dict[str, TextPreprocessor],
        layouts: dict[str, TokenLayout],
        batch_size: int,
        groups: int,
        marks_padding: bool,
    ) -> None:
        self._queries = TokenStore(preprocessors["queries"], queries, "queries")
        document_like = list(documents)
        if hard_negatives is not None:
            document_like += hard_negatives.texts
        self._documents = TokenStore(
            preprocessors["documents"], document_like, "documents"
        )
        self._first_negative = len(documents)
        self._hard_negatives = hard_negatives
        self._layouts = layouts
        self._batch_size = batch_size
        self._groups = groups
        self._marks_padding = marks_padding
        with tf.device("CPU:0"):
            self._ids = {
                "query_ids": tf.constant(query_ids),
                "document_ids": tf.constant(document_ids),
            }

    def __call__(self, rows: tf.Tensor) -> dict[str, Any]:
        rows = tf.ensure_shape(rows, [self._batch_size])
        if self._groups > 1:
            lengths = self._documents.lengths(tf.maximum(rows, ~rows))
            rows = tf.gather(rows, balanced_groups(lengths, self._groups))
        features: dict[str, Any] = {}
        if self._marks_padding:
            features["is_valid"] = tf.cast(rows >= 0, tf.int32)
            rows = tf.maximum(rows, ~rows)
        features["queries"] = self._layouts["queries"](
            self._queries.gather(rows)
        )
        features["documents"] = self._layouts["documents"](
            self._documents.gather(rows)
        )
        for name, values in self._ids.items():
            features[name] = tf.gather(values, rows)
        if self._hard_negatives is not None:
            features.update(
                self._hard_negative_features(self._hard_negatives, rows)
            )
        return features

    def _hard_negative_features(
        self, negatives: HardNegatives, rows: tf.Tensor
    ) -> dict[str, Any]:
        places = self._first_negative + negatives.numbers(rows)
        features = self._layouts["hard_negatives"](
            self._documents.gather(places)
        )
        # What has one entry per example gets the axes [batch, k].
        per_example = (
            ("lengths",)
            if "segment_ids" in features
            else ("token_ids", "padding_mask")
        )
        for name in per_example:
            value = features[name]
            shape = [self._batch_size, negatives.width, *value.shape[1:]]
            dynamic = [-1 if size is None else size for size in shape]
            features[name] = tf.reshape(value, dynamic)
        return {
            "hard_negatives": features,
            **negatives.identities(rows),
        }
