"""The global batch on every replica, with gradients."""

from collections.abc import Sequence

import tensorflow as tf

__all__ = ["gather_rows"]


def gather_rows(
    tensors: Sequence[tf.Tensor | None],
) -> tuple[list[tf.Tensor | None], tf.Tensor | int]:
    """Gathers the rows of all replicas, in the order of the replicas.

    The gradient of a gathered row flows back to the replica it came from, added
    up over all replicas. Every tensor is a collective of its own, issued in the
    order given, which must be the same on every replica. Outside a strategy, or
    with one replica, the tensors come back as they are.

    Args:
        tensors: each `[rows, ...]` or `None`; float32, float64, bool or
            integer (`ReplicaContext.all_gather` knows neither bfloat16 nor
            bool, so bool travels as int32). Replicas may differ in rows.

    Returns:
        The tensors `[all rows, ...]`, and the global index of the first local
        row, int32.
    """
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return list(tensors), 0
    first = next(tensor for tensor in tensors if tensor is not None)
    rows = _all_gather(context, tf.shape(first)[:1])
    offset = tf.reduce_sum(rows[: context.replica_id_in_sync_group])
    return [_gather(context, tensor) for tensor in tensors], offset


def _gather(
    context: tf.distribute.ReplicaContext, tensor: tf.Tensor | None
) -> tf.Tensor | None:
    if tensor is None:
        return None
    if tensor.dtype == tf.bool:
        return tf.cast(_gather(context, tf.cast(tensor, tf.int32)), tf.bool)
    gathered = _all_gather(context, tensor)
    # The gather forgets the static shape, which XLA and TPUs want.
    rows = tensor.shape[0]
    if rows is not None:
        rows *= context.num_replicas_in_sync
    return tf.ensure_shape(gathered, [rows, *tensor.shape[1:]])


def _all_gather(
    context: tf.distribute.ReplicaContext, tensor: tf.Tensor
) -> tf.Tensor:
    # With one replica per worker TensorFlow asks the tensor for its device,
    # which an input of the step or a constant does not have.
    return context.all_gather(tf.identity(tensor), axis=0)
