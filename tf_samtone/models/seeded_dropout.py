"""Dropout that can be repeated."""

import keras
import tensorflow as tf

from tf_samtone.models.dropout_seed import next_dropout_seed


@keras.saving.register_keras_serializable(package="tf_samtone")
class SeededDropout(keras.layers.Dropout):
    """Dropout whose random bits follow from the seed in force.

    Inside `dropout_seed` the layer keeps no state: the training step gives a
    seed made of run, step, replica and micro-batch, so dropout can be replayed
    and a checkpoint needs nothing but the number of the step. Elsewhere it is
    `keras.layers.Dropout`.

    Args:
        rate: float in [0, 1).
        **kwargs: see `keras.layers.Dropout`.
    """

    def call(self, inputs, training=None):
        seed = None
        if training and self.rate > 0:
            seed = next_dropout_seed()
        if seed is None:
            return super().call(inputs, training=training)
        # Bits, not floats: a bfloat16 uniform would be off by up to 2^-8.
        bits = tf.random.stateless_uniform(
            tf.shape(inputs), seed, None, None, tf.uint32
        )
        is_kept = bits >= tf.constant(int(self.rate * 2**32), tf.uint32)
        scale = tf.constant(1.0 / (1.0 - self.rate), inputs.dtype)
        return tf.where(is_kept, inputs * scale, tf.zeros_like(inputs))
