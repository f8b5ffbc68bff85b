"""Scaling of vectors to unit length."""

import keras
from keras import ops


@keras.saving.register_keras_serializable(package="tf_samtone")
class L2Normalization(keras.layers.Layer):
    """Scales each vector to unit length, in float32.

        y = x / sqrt(sum(x^2) + epsilon)

    The epsilon under the root keeps a zero vector finite. t5x_retrieval has
    1e-6 there, which makes short vectors a little shorter than 1, in the same
    direction; the default here is too small to show, as in
    sentence-transformers.

    Args:
        epsilon: float > 0. Defaults to `1e-12`.
        **kwargs: see `keras.layers.Layer`.
    """

    def __init__(self, epsilon=1e-12, **kwargs):
        kwargs.setdefault("dtype", "float32")
        super().__init__(**kwargs)
        self.epsilon = epsilon

    def call(self, inputs):
        inputs = ops.cast(inputs, "float32")
        square = ops.sum(ops.square(inputs), axis=-1, keepdims=True)
        return inputs * ops.rsqrt(square + self.epsilon)

    def get_config(self):
        return {**super().get_config(), "epsilon": self.epsilon}
