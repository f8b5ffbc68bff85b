"""The gradients of one batch."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_samtone.models.dropout_seed import folded_seed
from tf_samtone.models.embedded_batch import EmbeddedBatch
from tf_samtone.models.gradient_cache import GradientCache
from tf_samtone.models.pair_encoding import encode_pairs

__all__ = ["BatchGradients"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class BatchGradients:
    """What a training step gets from the local rows of a batch.

    The loss that is differentiated is the sum over local rows divided by the
    rows of all replicas: the gradients of all replicas add up to those of the
    mean over the global batch.

    Attributes:
        batch: `EmbeddedBatch`.
        total: float32 scalar, sum of the losses of the local rows.
        gradients: one per variable; a tensor, `tf.IndexedSlices` or `None`.
    """

    batch: EmbeddedBatch
    total: tf.Tensor
    gradients: list[Any]

    @classmethod
    def computed(
        cls,
        model: Any,
        features: dict[str, Any],
        variables: Sequence[Any],
        *,
        seed: tf.Tensor,
        micro_batch_size: int | None = None,
    ) -> "BatchGradients":
        """Encodes, computes the loss, and goes back.

        Args:
            model: `DualEncoder`, compiled.
            features: feature dict of the local rows.
            variables: Keras variables to differentiate by.
            seed: int32 `[2]`, decides dropout.
            micro_batch_size: int. Pairs whose activations are in memory at
                once, see `GradientCache`. Defaults to `None`, which is all.
        """
        loss = model.contrastive_loss
        values = [variable.value for variable in variables]
        if micro_batch_size is not None:
            cache = GradientCache(model, features, micro_batch_size, seed)
            embeddings = cache.embeddings()
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(embeddings)
                tape.watch([v.value for v in loss.trainable_variables])
                batch = EmbeddedBatch.gathered(embeddings, features)
                total = batch.total_loss(loss)
                objective = total / tf.maximum(batch.num_columns, 1.0)
            upstream, direct = tape.gradient(objective, (embeddings, values))
            gradients = cache.gradients(upstream, values, direct)
        else:
            with tf.GradientTape() as tape:
                embeddings = encode_pairs(
                    model, features, training=True, seed=folded_seed(seed, 0)
                )
                batch = EmbeddedBatch.gathered(embeddings, features)
                total = batch.total_loss(loss)
                objective = total / tf.maximum(batch.num_columns, 1.0)
            gradients = tape.gradient(objective, values)
        return cls(batch=batch, total=total, gradients=gradients)
