"""The figures that `fit` and `evaluate` report."""

from typing import Any

import tensorflow as tf

from tf_samtone.losses import contrastive_diagnostics
from tf_samtone.models.embedded_batch import EmbeddedBatch

__all__ = ["update_metrics"]


def update_metrics(
    model: Any,
    total: tf.Tensor,
    batch: EmbeddedBatch,
    is_finite: tf.Tensor | None = None,
) -> None:
    """Adds a batch to a model's metrics; one that is not finite adds nothing.

    By weights of 0, not by a condition or by leaving rows out: shapes stay
    static, as TPUs want them.

    Args:
        model: `DualEncoder`, compiled.
        total: float32 scalar, sum of the losses of the local rows.
        batch: `EmbeddedBatch`.
        is_finite: bool scalar. Defaults to `None`, which is true.
    """
    num_rows = batch.num_rows
    is_valid = batch.loss_arguments["is_valid"]
    if is_valid is not None:
        is_valid = tf.cast(is_valid, tf.bool)
    if is_finite is not None:
        # A NaN in the mean would hide every good step of the epoch.
        total = tf.where(is_finite, total, 0.0)
        num_rows *= tf.cast(is_finite, tf.float32)
        rows = tf.fill(tf.shape(batch.queries)[:1], is_finite)
        is_valid = rows if is_valid is None else rows & is_valid
    # As mean and weight, so that adding up over replicas and steps gives the
    # mean over rows.
    model._loss_tracker.update_state(
        tf.math.divide_no_nan(total, num_rows), sample_weight=num_rows
    )
    if model.in_batch_metrics:
        labels, scores = batch.labels_and_scores()
        weights = None
        if is_valid is not None:
            scores = tf.where(is_valid[:, None], scores, 0.0)
            weights = tf.cast(is_valid, tf.float32)
        for metric in model.in_batch_metrics:
            metric.update_state(labels, scores, sample_weight=weights)
    if model.diagnostics:
        _update_diagnostics(model, batch, is_valid)


def _update_diagnostics(
    model: Any, batch: EmbeddedBatch, is_valid: tf.Tensor | None
) -> None:
    rows = contrastive_diagnostics(
        model.contrastive_loss,
        batch.queries,
        batch.documents,
        **batch.loss_arguments,
    )
    for metric in model.diagnostics:
        values = rows[metric.name]
        if is_valid is not None:
            values = tf.where(is_valid, values, 0.0)
        metric.update_state(values, sample_weight=is_valid)
