"""Relative position bias of T5's encoder."""

import math

import keras
from keras import ops

from tf_samtone.models.encoder_size import MAX_DISTANCE, NUM_BUCKETS


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5PositionBias(keras.layers.Layer):
    """Learned bias per head and bucketed distance, shared by all layers.

    Half of the 32 buckets serve each sign of the distance; within a half, the
    first 8 are exact and the rest grow logarithmically up to 128 tokens.

    Args:
        num_heads: int.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: tensor `[batch, seq, ...]`; only its length is used.

    Returns:
        float32 `[1, num_heads, seq, seq]`.

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683
    """

    def __init__(self, num_heads, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads

    def build(self, input_shape):
        self.relative_attention_bias = self.add_weight(
            name="relative_attention_bias",
            shape=(NUM_BUCKETS, self.num_heads),
            initializer=keras.initializers.RandomNormal(stddev=0.05),
            # Otherwise the table would be read in bfloat16.
            autocast=False,
        )

    def call(self, inputs):
        positions = ops.arange(ops.shape(inputs)[1])
        # Distance from the attending token (rows) to the attended (columns).
        buckets = relative_position_bucket(
            positions[None, :] - positions[:, None]
        )
        table = ops.cast(self.relative_attention_bias, "float32")
        bias = ops.take(table, buckets, axis=0)
        return ops.transpose(bias, (2, 0, 1))[None]

    def compute_output_spec(self, inputs):
        seq = inputs.shape[1]
        shape = (1, self.num_heads, seq, seq)
        return keras.KerasTensor(shape, dtype="float32")

    def get_config(self):
        return {**super().get_config(), "num_heads": self.num_heads}


def relative_position_bucket(distances):
    """Maps signed distances to buckets of a bidirectional encoder.

    Args:
        distances: int32 of any shape, in tokens.

    Returns:
        int32 of the same shape, in [0, 32).
    """
    half = NUM_BUCKETS // 2
    max_exact = half // 2
    is_after = ops.cast(distances > 0, "int32") * half
    distances = ops.abs(distances)
    # max(1): the logarithm of 0 is not used, but would be -inf.
    ratio = ops.cast(ops.maximum(distances, 1), "float32") / max_exact
    growth = (half - max_exact) / math.log(MAX_DISTANCE / max_exact)
    large = max_exact + ops.cast(ops.log(ratio) * growth, "int32")
    large = ops.minimum(large, half - 1)
    return is_after + ops.where(distances < max_exact, distances, large)
