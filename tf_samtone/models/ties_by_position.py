"""In-batch metrics that do not depend on a random generator."""

from typing import Any

import keras
import tensorflow as tf


class TiesByPosition(keras.metrics.Metric):
    """Gives a ranking metric scores in which no tie matters.

    tensorflow-ranking shuffles ties by a generator whose state no checkpoint
    can hold (version 0.5.3), so a resumed run would log other figures than one
    without a break: documents that are in a batch twice have equal scores.
    Here the one that comes first in the batch wins, which is fair to the two
    queries together.

    Args:
        metric: Keras metric on `(labels, scores)`, with one relevant document
            per row, whose rank is all that it looks at.
    """

    def __init__(self, metric: Any) -> None:
        super().__init__(name=metric.name)
        self._metric = metric

    def update_state(
        self, y_true: Any, y_pred: Any, sample_weight: Any = None
    ) -> None:
        if sample_weight is not None:
            # Keras weighs rows, tensorflow-ranking the entries of a row.
            sample_weight = tf.reshape(
                tf.cast(sample_weight, y_true.dtype), [-1, 1]
            )
        own = tf.reduce_sum(y_true * y_pred, axis=1, keepdims=True)
        columns = tf.range(tf.shape(y_pred)[1])[tf.newaxis]
        is_before = (
            columns
            < tf.argmax(y_true, axis=1, output_type=tf.int32)[:, tf.newaxis]
        )
        is_ahead = (y_pred > own) | ((y_pred == own) & is_before)
        self._metric.update_state(
            y_true,
            2.0 * tf.cast(is_ahead, y_true.dtype) + y_true,
            sample_weight=sample_weight,
        )

    def result(self) -> Any:
        return self._metric.result()

    def reset_state(self) -> None:
        self._metric.reset_state()
