"""A temperature that is trained with the model."""

import math

import keras
from keras import ops

from tf_samtone.errors import InvalidInputError


@keras.saving.register_keras_serializable(package="tf_samtone")
class LearnedTemperature(keras.layers.Layer):
    """A trainable temperature, bounded from below.

        t = exp(max(log_temperature, log(minimum)))

    Learned through its logarithm, as in CLIP; the bound keeps the logits from
    growing for ever. Keras optimizers set a logarithm below the bound back to
    it, where its gradient is not 0, so that the temperature can rise again.
    `DualEncoder.compile` adds it to what is trained.

    The config keeps `initial`, not what was learned; that is a weight.

    Args:
        initial: float > 0, finite. Temperature at the start. Defaults to
            `0.05`.
        minimum: float > 0, at most `initial`. Defaults to `0.01`.
        **kwargs: see `keras.layers.Layer`.

    Raises:
        InvalidInputError: if a bound is out of range.

    Reference:
        Radford et al., 2021, Learning Transferable Visual Models From Natural
        Language Supervision, https://arxiv.org/abs/2103.00020
    """

    def __init__(self, initial=0.05, minimum=0.01, **kwargs):
        # Too few bits for small steps, whatever the policy of the model.
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        if not 0 < minimum <= initial < math.inf:
            raise InvalidInputError(
                "Expected 0 < `minimum` <= `initial`, finite. Received: "
                f"initial={initial}, minimum={minimum}. CLIP starts at 0.07 "
                "with a minimum of 0.01."
            )
        self.initial = float(initial)
        self.minimum = float(minimum)
        self.log_temperature = self.add_weight(
            name="log_temperature",
            shape=(),
            initializer=keras.initializers.Constant(math.log(initial)),
            constraint=self._bounded,
        )
        self.built = True

    def value(self):
        """Returns the temperature, a float32 scalar."""
        return ops.exp(self._bounded(self.log_temperature))

    def _bounded(self, log_temperature):
        # At equality the gradient of `maximum` is that of its first argument.
        return ops.maximum(log_temperature, math.log(self.minimum))

    def get_config(self):
        return {
            **super().get_config(),
            "initial": self.initial,
            "minimum": self.minimum,
        }
