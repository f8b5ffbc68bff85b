"""Root-mean-square normalisation of T5."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5LayerNorm(keras.layers.Layer):
    """Divides by the root mean square, without centring and without bias.

        y = weight * x / sqrt(mean(x^2) + epsilon)

    The mean is float32 whatever the compute dtype: hidden states of real T5
    weights reach 1e5, whose squares lose everything in bfloat16 sums.

    Args:
        epsilon: float > 0. Defaults to `1e-6`.
        **kwargs: see `keras.layers.Layer`.

    Reference:
        Raffel et al., 2020, Exploring the Limits of Transfer Learning with a
        Unified Text-to-Text Transformer, https://arxiv.org/abs/1910.10683
    """

    def __init__(self, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def build(self, input_shape):
        # Without autocast=False the weight would be read in bfloat16.
        self.weight = self.add_weight(
            name="weight",
            shape=(input_shape[-1],),
            initializer="ones",
            autocast=False,
        )

    def call(self, inputs):
        hidden = ops.cast(inputs, "float32")
        mean_square = ops.mean(ops.square(hidden), axis=-1, keepdims=True)
        hidden = hidden * ops.rsqrt(mean_square + self.epsilon)
        weight = ops.cast(self.weight, "float32")
        return ops.cast(weight * hidden, self.compute_dtype)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
