"""The logs of a step in the shape that Keras reduces."""

from collections.abc import Mapping

import tensorflow as tf

__all__ = ["reducible_logs"]


def reducible_logs(logs: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    """Returns what a `train_step` or `test_step` may return everywhere.

    With several workers Keras 3.15 takes the mean of the logs over their axis
    0, which a scalar does not have (`reduce_per_replica` in its TensorFlow
    trainer); there, scalars become float `[1]`.

    Args:
        logs: scalars by name.
    """
    strategy = tf.distribute.get_strategy()
    is_cluster = (
        isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
        and strategy.extended._in_multi_worker_mode()
    )
    if not is_cluster:
        return dict(logs)
    return {name: tf.reshape(value, [1]) for name, value in logs.items()}
