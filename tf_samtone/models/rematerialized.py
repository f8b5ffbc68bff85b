"""Computing a function once more in the backward pass."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

__all__ = ["rematerialized"]


def rematerialized(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function keep nothing but its arguments for its gradient.

    As `tf.recompute_grad`, but the second computation depends on the gradient
    that arrives, so that no compiler takes it for the first: in the step that
    `benchmarks/tpu_compile.py` compiles for a TPU, `tf.recompute_grad` saves
    nothing (TensorFlow 2.20).

    Args:
        function: from float tensors to one float tensor; may read variables.
            What else it captures gets no gradient.

    Returns:
        function of the same arguments and result.
    """

    @tf.custom_gradient
    def wrapped(*arguments: tf.Tensor) -> Any:
        result = function(*arguments)

        def gradient(upstream: tf.Tensor, variables: Any = None) -> Any:
            variables = list(variables or [])
            # 0, or NaN where the gradient is NaN anyway: no compiler may say
            # that it is always 0.
            first = tf.reshape(upstream, [-1])[0]
            nothing = tf.where(
                tf.math.is_nan(first), first, tf.zeros_like(first)
            )
            again = [x + tf.cast(nothing, x.dtype) for x in arguments]
            with tf.GradientTape() as tape:
                tape.watch(again)
                tape.watch(variables)
                repeated = function(*again)
            gradients = tape.gradient(
                repeated,
                [*again, *variables],
                output_gradients=upstream,
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )
            return gradients[: len(again)], gradients[len(again) :]

        return result, gradient

    return wrapped
