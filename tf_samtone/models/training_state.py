"""What a run knows besides weights and optimizer."""

import keras
import tensorflow as tf


class TrainingState:
    """Counts the batches of a run, and those that taught nothing.

    Not a layer, so that the counters are neither weights nor part of a preset;
    a checkpoint keeps them. Make it in the strategy's scope.

    Attributes:
        steps: int64 scalar variable, batches seen, also the skipped ones. The
            seed of dropout follows from it.
        skipped_steps: int64 scalar variable, batches whose loss or gradient
            was not finite; they changed nothing.
        consecutive_skipped: int64 scalar variable, those since the last good
            batch.
        gradient_norm: float32 scalar variable, global norm of the gradients of
            the last batch before clipping. Not in the logs: next to a figure
            that is no metric, Keras reports the plain mean over replicas of
            all of them, whatever their numbers of rows.
    """

    def __init__(self):
        self.steps = _counter("steps")
        self.skipped_steps = _counter("skipped_steps")
        self.consecutive_skipped = _counter("consecutive_skipped")
        self.gradient_norm = _variable("gradient_norm", "float32")

    @property
    def variables(self):
        """The variables as `{name: keras.Variable}`."""
        return dict(vars(self))

    def update(self, is_finite, gradient_norm):
        """Counts one batch, on every replica alike.

        Args:
            is_finite: bool scalar, whether the weights were updated.
            gradient_norm: float32 scalar.
        """
        self.gradient_norm.assign(gradient_norm)
        bad = tf.cast(tf.logical_not(is_finite), tf.int64)
        self.steps.assign_add(1)
        self.skipped_steps.assign_add(bad)
        run = tf.convert_to_tensor(self.consecutive_skipped)
        self.consecutive_skipped.assign((run + 1) * bad)


def _counter(name):
    return _variable(name, "int64")


def _variable(name, dtype):
    return keras.Variable(
        0,
        trainable=False,
        dtype=dtype,
        aggregation="only_first_replica",
        name=name,
    )
