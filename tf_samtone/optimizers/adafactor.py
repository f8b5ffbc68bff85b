"""Adafactor whose state is really smaller than the parameters."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tf_samtone.errors import InvalidInputError

# Just above float32's smallest normal number, below which TensorFlow's CPU
# kernels flush to zero.
_SMALLEST_QUOTIENT = 1.2e-38


@keras.saving.register_keras_serializable(package="tf_samtone")
class Adafactor(keras.optimizers.Optimizer):
    r"""Adafactor with t5x semantics and sublinear memory.

    For a gradient G of a matrix W at update t = 1, 2, ..., which counts on
    from `step_offset`:

        b = 1 - t ** beta_2_decay
        R = b * R + (1 - b) * row_mean(G ** 2 + epsilon_1)
        C = b * C + (1 - b) * column_mean(G ** 2 + epsilon_1)
        U = G / sqrt(outer(R, C) / mean(R))
        U = U / max(1, RMS(U) / clip_threshold)
        W = W - learning_rate * max(epsilon_2, RMS(W)) * U

    Only R and C are stored for a matrix, in float32: `rows + columns` numbers
    where Adam keeps `2 * rows * columns`. `keras.optimizers.Adafactor`
    computes the same but stores the full second moment as well, and always
    caps the rate at `1 / sqrt(t)`; here that cap is `relative_step=True`.
    No momentum is kept. Sparse embedding gradients give the same update as
    the dense gradient that they stand for.

    >>> matrix = keras.Variable(keras.ops.ones((256, 512)))
    >>> optimizer = Adafactor(learning_rate=1e-3)
    >>> optimizer.build([matrix])
    >>> sum(moment.shape[0] for moment in optimizer.variables[2:])
    768

    Args:
        learning_rate: float, schedule or callable. Relative to the size of
            the parameters unless `multiply_by_parameter_scale=False`.
            Defaults to `1e-3`.
        beta_2_decay: float. Exponent of the decay of the second moment,
            < 0. Defaults to `-0.8`.
        epsilon_1: float. Added to squared gradients, > 0. Defaults to
            `1e-30`.
        epsilon_2: float. Smallest parameter scale, > 0. Defaults to `1e-3`.
        clip_threshold: float. Largest root mean square of an update, > 0;
            `None` for no limit. Defaults to `1.0`.
        multiply_by_parameter_scale: bool. Whether the rate is multiplied by
            the root mean square of the parameter. Defaults to `True`.
        relative_step: bool. Whether to cap the rate at `1 / sqrt(n)` for
            update number n, as Keras does. Defaults to `False`.
        min_factored_dim: int. A variable of rank >= 2 is factored if its
            last two dimensions are both at least this; others keep a full
            second moment. Defaults to `128` (t5x's value); `0` factors every
            matrix, as Keras does.
        factored: bool. `False` keeps the full second moment of every
            variable. Defaults to `True`.
        step_offset: int >= 0. t is the number of the update minus this, as in
            t5x: a run whose step counter goes on from pretraining passes the
            steps done, and starts with fresh second moments. Learning-rate
            schedules still see the whole count. Updates up to this number
            have t = 1, which remembers nothing. Defaults to `0`.
        **kwargs: the arguments of `keras.optimizers.Optimizer`.
            `weight_decay` is decoupled and multiplied by the learning rate,
            but not by the parameter scale.

    Raises:
        InvalidInputError: if an argument is out of range.

    Reference:
        Shazeer and Stern, 2018, Adafactor: Adaptive Learning Rates with
        Sublinear Memory Cost, https://arxiv.org/abs/1804.04235
    """

    def __init__(
        self,
        learning_rate: Any = 1e-3,
        *,
        beta_2_decay: float = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float | None = 1.0,
        multiply_by_parameter_scale: bool = True,
        relative_step: bool = False,
        min_factored_dim: int = 128,
        factored: bool = True,
        step_offset: int = 0,
        name: str = "adafactor",
        **kwargs: Any,
    ) -> None:
        _check_positive("epsilon_1", epsilon_1)
        _check_positive("epsilon_2", epsilon_2)
        if clip_threshold is not None:
            _check_positive("clip_threshold", clip_threshold)
        if not beta_2_decay < 0.0:
            raise InvalidInputError(
                "Expected `beta_2_decay` < 0. Received: "
                f"beta_2_decay={beta_2_decay}. The paper uses -0.8."
            )
        if min_factored_dim < 0:
            raise InvalidInputError(
                "Expected `min_factored_dim` >= 0. Received: "
                f"min_factored_dim={min_factored_dim}. Pass 0 to factor "
                "every matrix."
            )
        if step_offset < 0:
            raise InvalidInputError(
                "Expected `step_offset` >= 0. Received: "
                f"step_offset={step_offset}. Pass the number of updates that "
                "were done before this run, or 0."
            )
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.beta_2_decay = beta_2_decay
        self.epsilon_1 = epsilon_1
        self.epsilon_2 = epsilon_2
        self.clip_threshold = clip_threshold
        self.multiply_by_parameter_scale = multiply_by_parameter_scale
        self.relative_step = relative_step
        self.min_factored_dim = min_factored_dim
        self.factored = factored
        self.step_offset = step_offset

    def _is_factored(self, shape: Sequence[int]) -> bool:
        if not self.factored or len(shape) < 2:
            return False
        return min(shape[-2:]) >= self.min_factored_dim

    def build(self, variables: list[keras.Variable]) -> None:
        """Create the second moments of `variables`.

        Args:
            variables: the trainable variables of the model.
        """
        if self.built:
            return
        super().build(variables)
        self._moments: list[tuple[keras.Variable, ...]] = []
        for variable in variables:
            shape = tuple(variable.shape)
            # The path is unique in a model; the name ("kernel") is not.
            path = getattr(variable, "path", variable.name).replace("/", "_")
            slots = {"moment": shape}
            if self._is_factored(shape):
                slots = {
                    "row_moment": shape[:-1],
                    "column_moment": (*shape[:-2], shape[-1]),
                }
            self._moments.append(
                tuple(
                    self.add_variable(
                        shape=slot_shape,
                        dtype="float32",
                        name=f"{path}_{slot}",
                    )
                    for slot, slot_shape in slots.items()
                )
            )

    def update_step(
        self, gradient: Any, variable: Any, learning_rate: Any
    ) -> None:
        """Apply one gradient to one variable.

        Args:
            gradient: tensor of the variable's shape, or `tf.IndexedSlices`.
            variable: the variable to change.
            learning_rate: float scalar.
        """
        gradient = _dense_float32(gradient, variable.shape)
        step = tf.cast(self.iterations, tf.float32) + 1.0
        rate = tf.cast(learning_rate, tf.float32)
        if self.relative_step:
            rate = tf.minimum(rate, tf.math.rsqrt(step))
        if self.multiply_by_parameter_scale:
            scale = _rms(tf.cast(variable, tf.float32))
            rate *= tf.maximum(scale, self.epsilon_2)

        steps_since_offset = tf.maximum(step - float(self.step_offset), 1.0)
        decay = 1.0 - tf.pow(steps_since_offset, self.beta_2_decay)
        moments = self._moments[self._get_variable_index(variable)]
        update = self._normalise(gradient, moments, decay)
        if self.clip_threshold is not None:
            rate /= tf.maximum(1.0, _rms(update) / self.clip_threshold)
        update *= rate
        self.assign_sub(variable, tf.cast(update, variable.dtype))

    def _normalise(
        self, gradient: tf.Tensor, moments: tuple[Any, ...], decay: tf.Tensor
    ) -> tf.Tensor:
        """Update the second moment and divide the gradient by its root."""
        square = tf.square(gradient)
        if len(moments) == 1:
            moment = self._decayed(moments[0], square, decay)
            return gradient * tf.math.rsqrt(moment)
        rows, columns = moments
        rows = self._decayed(rows, tf.reduce_mean(square, -1), decay)
        columns = self._decayed(columns, tf.reduce_mean(square, -2), decay)
        # A row that never had a gradient holds epsilon_1. Beside rows of
        # large gradients the quotient underflows, and 0 * inf is NaN. The
        # factors are applied one by one since their product may overflow.
        quotient = rows / tf.reduce_mean(rows, -1, True)
        row_factor = tf.math.rsqrt(tf.maximum(quotient, _SMALLEST_QUOTIENT))
        column_factor = tf.math.rsqrt(columns)
        return (gradient * row_factor[..., tf.newaxis]) * column_factor[
            ..., tf.newaxis, :
        ]

    def _decayed(
        self, moment: Any, square: tf.Tensor, decay: tf.Tensor
    ) -> tf.Tensor:
        """Store and return the new running mean of squared gradients."""
        value = decay * tf.convert_to_tensor(moment) + (1.0 - decay) * (
            square + self.epsilon_1
        )
        self.assign(moment, value)
        return value

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {
            **super().get_config(),
            "beta_2_decay": self.beta_2_decay,
            "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2,
            "clip_threshold": self.clip_threshold,
            "multiply_by_parameter_scale": self.multiply_by_parameter_scale,
            "relative_step": self.relative_step,
            "min_factored_dim": self.min_factored_dim,
            "factored": self.factored,
            "step_offset": self.step_offset,
        }


def _check_positive(name: str, value: float) -> None:
    """Refuse zero, negative numbers and NaN."""
    if not value > 0.0:
        raise InvalidInputError(
            f"Expected `{name}` > 0. Received: {name}={value}. Pass a "
            "positive float."
        )


def _rms(x: tf.Tensor) -> tf.Tensor:
    """Return the root mean square of all elements of x."""
    return tf.sqrt(tf.reduce_mean(tf.square(x)))


def _dense_float32(gradient: Any, shape: Any) -> tf.Tensor:
    """Return the gradient as a float32 tensor; repeated rows are summed."""
    if isinstance(gradient, tf.IndexedSlices):
        # Not tf.convert_to_tensor: it warns about the memory that it takes.
        return tf.math.unsorted_segment_sum(
            tf.cast(gradient.values, tf.float32), gradient.indices, shape[0]
        )
    return tf.cast(gradient, tf.float32)
