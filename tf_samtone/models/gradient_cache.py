"""Batches larger than memory, with all their negatives."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.dropout_seed import folded_seed
from tf_samtone.models.pair_encoding import count_pairs, encode_pairs

__all__ = ["GradientCache"]


class GradientCache:
    """Encodes a batch twice, in micro-batches, to differentiate it exactly.

    A contrastive loss needs all embeddings of a batch at once, but not all
    activations. The first pass keeps the embeddings only; the loss gives their
    gradients; the second pass encodes each micro-batch again, with the same
    dropout, and carries its part of the gradients back to the weights. The
    gradients are those of the whole batch up to rounding, for every loss, and
    memory is that of one micro-batch.

    Args:
        model: `DualEncoder`.
        features: feature dict of the local rows. Packed rows must be packed in
            groups of `micro_batch_size` pairs.
        micro_batch_size: int, pairs; must divide the local rows.
        seed: int32 `[2]`, decides dropout.

    Raises:
        InvalidInputError: if the micro-batch does not divide the batch.

    Reference:
        Gao et al., 2021, Scaling Deep Contrastive Learning Batch Size under
        Memory Limited Setup, https://arxiv.org/abs/2101.06983
    """

    def __init__(
        self,
        model: Any,
        features: dict[str, Any],
        micro_batch_size: int,
        seed: tf.Tensor,
    ) -> None:
        self._model = model
        self._seed = seed
        self._count = _count_parts(count_pairs(features), micro_batch_size)
        self._features = tf.nest.map_structure(self._divided, features)

    def embeddings(self) -> dict[str, tf.Tensor]:
        """Encodes all rows without keeping activations.

        Returns:
            dict as of `encode_pairs`.
        """
        shapes = self._part_spec()
        arrays = {
            name: tf.TensorArray(tf.float32, self._count, element_shape=shape)
            for name, shape in shapes.items()
        }

        def encode(
            i: tf.Tensor, arrays: dict[str, Any]
        ) -> tuple[tf.Tensor, dict[str, Any]]:
            part = self._encode(i)
            return i + 1, {k: a.write(i, part[k]) for k, a in arrays.items()}

        _, arrays = self._loop(encode, arrays)
        return {
            name: tf.reshape(array.stack(), [-1, *shapes[name][1:]])
            for name, array in arrays.items()
        }

    def gradients(
        self,
        upstream: dict[str, tf.Tensor],
        values: Sequence[tf.Variable],
        direct: Sequence[Any],
    ) -> list[Any]:
        """Carries the gradients of the embeddings back to the weights.

        Args:
            upstream: gradients of the dict that `embeddings` gave.
            values: the variables.
            direct: gradients that do not pass through the embeddings (of a
                learned temperature), one or `None` per variable; such
                variables have no other.

        Returns:
            list of float32 tensors, one per variable.
        """
        upstream = tf.nest.map_structure(self._divided, upstream)
        encoded = [v for v, d in zip(values, direct, strict=True) if d is None]
        sums = [tf.zeros(v.shape, tf.float32) for v in encoded]

        def add(
            i: tf.Tensor, sums: list[tf.Tensor]
        ) -> tuple[tf.Tensor, list[tf.Tensor]]:
            with tf.GradientTape() as tape:
                part = self._encode(i)
            gradients = tape.gradient(
                part,
                encoded,
                output_gradients={k: upstream[k][i] for k in part},
            )
            pairs = zip(sums, gradients, strict=True)
            return i + 1, [_added(total, part) for total, part in pairs]

        _, sums = self._loop(add, sums)
        from_encoders = iter(sums)
        return [next(from_encoders) if d is None else d for d in direct]

    def _encode(self, i: tf.Tensor) -> dict[str, tf.Tensor]:
        part = tf.nest.map_structure(lambda x: x[i], self._features)
        return encode_pairs(
            self._model, part, training=True, seed=folded_seed(self._seed, i)
        )

    def _loop(self, body: Any, state: Any) -> Any:
        return tf.while_loop(
            lambda i, _: i < self._count,
            body,
            (tf.constant(0), state),
            # More would hold the activations of several parts.
            parallel_iterations=1,
            maximum_iterations=self._count,
        )

    def _divided(self, tensor: tf.Tensor) -> tf.Tensor:
        """Returns `[parts, rows of a part, ...]`."""
        rows = tensor.shape[0]
        if rows is not None and isinstance(self._count, int):
            rows = rows // self._count
        else:
            rows = tf.shape(tensor)[0] // self._count
        rest = tf.shape(tensor)[1:]
        divided = tf.reshape(tensor, tf.concat([[self._count, rows], rest], 0))
        static = rows if isinstance(rows, int) else None
        return tf.ensure_shape(divided, [None, static, *tensor.shape[1:]])

    def _part_spec(self) -> dict[str, list[int | None]]:
        """Returns the shapes of the embeddings of one part."""
        rows = count_pairs(
            tf.nest.map_structure(lambda x: x[0], self._features)
        )
        static = rows if isinstance(rows, int) else None
        spec: dict[str, list[int | None]] = {
            name: [static, self._model.dim] for name in ("queries", "documents")
        }
        if "hard_negatives" in self._features:
            tokens = self._features["hard_negatives"]
            k = tokens.get("lengths", tokens["token_ids"]).shape[2]
            spec["hard_negatives"] = [static, k, self._model.dim]
        return spec


def _count_parts(pairs: int | tf.Tensor, size: int) -> int | tf.Tensor:
    advice = (
        "Choose a gradient_cache_batch_size that divides the batch of one "
        "replica."
    )
    if isinstance(pairs, int):
        if pairs % size:
            raise InvalidInputError(
                "Expected micro-batches that divide the batch. Received: "
                f"gradient_cache_batch_size={size}, {pairs} pairs per replica. "
                + advice
            )
        return pairs // size
    remainder = tf.debugging.assert_equal(
        pairs % size,
        0,
        f"Expected micro-batches of {size} that divide the batch. {advice}",
    )
    with tf.control_dependencies([remainder] if remainder is not None else []):
        return tf.identity(pairs // size)


def _added(total: tf.Tensor, part: Any) -> tf.Tensor:
    if part is None:
        return total
    if isinstance(part, tf.IndexedSlices):
        # Touches the rows in use only, not the whole embedding table.
        return tf.tensor_scatter_nd_add(
            total,
            part.indices[:, None],
            tf.cast(part.values, tf.float32),
        )
    return total + tf.cast(part, tf.float32)
