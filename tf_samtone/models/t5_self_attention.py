"""Self-attention of T5's encoder."""

import keras
from keras import ops

from tf_samtone.models.seeded_dropout import SeededDropout


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5SelfAttention(keras.layers.Layer):
    """Multi-head self-attention without scaling, with a position bias.

    T5 has no 1/sqrt(dim) in the scores: it is folded into the initialisation
    of the query kernel. Products of queries and keys are in the compute dtype;
    bias, masking and softmax are float32. The mask is applied by `where` and
    apart from the bias, which is so stored once and not once per example.

    Args:
        hidden_dim: int. Width of inputs and outputs.
        num_heads: int.
        key_value_dim: int. Width of one head.
        dropout: float in [0, 1). On the attention weights.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: float `[batch, seq, hidden_dim]`.
        attention_mask: bool `[batch, 1, 1, seq]`, true at real tokens, or
            `[batch, 1, seq, seq]`, true where a token (third axis) attends to
            another (fourth axis).
        position_bias: float32 `[1, num_heads, seq, seq]`.

    Returns:
        float `[batch, seq, hidden_dim]`.

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683
    """

    def __init__(
        self, hidden_dim, num_heads, key_value_dim, dropout=0.0, **kwargs
    ):
        # Without this Keras would cast the float32 bias to the compute dtype.
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        self.hidden_dim = hidden_dim
        self.num_heads = num_heads
        self.key_value_dim = key_value_dim
        self.dropout = dropout
        inner_dim = num_heads * key_value_dim
        self.query_projector = self._projector(
            "query_projector", inner_dim, (hidden_dim * key_value_dim) ** -0.5
        )
        self.key_projector = self._projector(
            "key_projector", inner_dim, hidden_dim**-0.5
        )
        self.value_projector = self._projector(
            "value_projector", inner_dim, hidden_dim**-0.5
        )
        self.output_projector = self._projector(
            "output_projector", hidden_dim, inner_dim**-0.5
        )
        self.dropout_layer = SeededDropout(
            dropout, dtype=self.dtype_policy, name="dropout"
        )

    def _projector(self, name, units, stddev):
        return keras.layers.Dense(
            units,
            use_bias=False,
            kernel_initializer=keras.initializers.RandomNormal(stddev=stddev),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape):
        inner_shape = (*input_shape[:-1], self.num_heads * self.key_value_dim)
        self.query_projector.build(input_shape)
        self.key_projector.build(input_shape)
        self.value_projector.build(input_shape)
        self.output_projector.build(inner_shape)

    def call(self, inputs, attention_mask, position_bias, training=None):
        batch, seq = ops.shape(inputs)[:2]
        inner_dim = self.num_heads * self.key_value_dim

        def heads(projector):
            shape = (batch, seq, self.num_heads, self.key_value_dim)
            return ops.transpose(
                ops.reshape(projector(inputs), shape), (0, 2, 1, 3)
            )

        query = heads(self.query_projector)
        key = heads(self.key_projector)
        value = heads(self.value_projector)
        scores = ops.matmul(query, ops.transpose(key, (0, 1, 3, 2)))
        scores = ops.cast(scores, "float32") + position_bias
        lowest = ops.cast(-3.0e38, "float32")
        weights = ops.softmax(
            ops.where(attention_mask, scores, lowest), axis=-1
        )
        weights = ops.cast(weights, self.compute_dtype)
        weights = self.dropout_layer(weights, training=training)
        attended = ops.transpose(ops.matmul(weights, value), (0, 2, 1, 3))
        attended = ops.reshape(attended, (batch, seq, inner_dim))
        return self.output_projector(attended)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "num_heads": self.num_heads,
            "key_value_dim": self.key_value_dim,
            "dropout": self.dropout,
        }
