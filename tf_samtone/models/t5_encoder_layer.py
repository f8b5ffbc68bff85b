"""One layer of T5's encoder."""

import functools

import keras

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.dropout_seed import dropout_seed, next_dropout_seed
from tf_samtone.models.rematerialized import rematerialized
from tf_samtone.models.seeded_dropout import SeededDropout
from tf_samtone.models.t5_layer_norm import T5LayerNorm
from tf_samtone.models.t5_self_attention import T5SelfAttention

# T5 1.1's "gelu" is the tanh approximation, not the exact one.
ACTIVATIONS = {
    "relu": keras.activations.relu,
    "gelu": functools.partial(keras.activations.gelu, approximate=True),
}


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5EncoderLayer(keras.layers.Layer):
    """Self-attention and feed-forward, each normalised first and residual.

    Args:
        hidden_dim: int. Width of inputs and outputs.
        intermediate_dim: int. Width inside the feed-forward part.
        num_heads: int.
        key_value_dim: int. Width of one head.
        dropout: float in [0, 1). Defaults to `0.0`.
        activation: str. `"gelu"` (tanh approximation) or `"relu"`.
        use_gated_activation: bool. Multiplies the activation by a second
            projection (T5 1.1).
        layer_norm_epsilon: float > 0. Defaults to `1e-6`.
        rematerialize: bool. Keeps only the layer's input for the backward
            pass of training, which computes the layer once more. Defaults to
            `False`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: float `[batch, seq, hidden_dim]`.
        attention_mask: bool `[batch, 1, 1 or seq, seq]`, see
            `T5SelfAttention`.
        position_bias: float32 `[1, num_heads, seq, seq]`.

    Returns:
        float `[batch, seq, hidden_dim]`.

    Raises:
        InvalidInputError: if the activation is unknown.

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683; Shazeer, 2020,
        GLU Variants Improve Transformer, https://arxiv.org/abs/2002.05202
    """

    def __init__(
        self,
        hidden_dim,
        intermediate_dim,
        num_heads,
        key_value_dim,
        dropout=0.0,
        activation="gelu",
        use_gated_activation=True,
        layer_norm_epsilon=1e-6,
        rematerialize=False,
        **kwargs,
    ):
        # Without this Keras would cast the float32 bias to the compute dtype.
        kwargs["autocast"] = False
        super().__init__(**kwargs)
        if activation not in ACTIVATIONS:
            raise InvalidInputError(
                f"Expected `activation` to be one of {tuple(ACTIVATIONS)}. "
                f"Received: activation={activation!r}."
            )
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.num_heads = num_heads
        self.key_value_dim = key_value_dim
        self.dropout = dropout
        self.activation = activation
        self.use_gated_activation = use_gated_activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.rematerialize = rematerialize

        self.self_attention_layer_norm = self._norm("self_attention_layer_norm")
        self.self_attention = T5SelfAttention(
            hidden_dim=hidden_dim,
            num_heads=num_heads,
            key_value_dim=key_value_dim,
            dropout=dropout,
            dtype=self.dtype_policy,
            name="self_attention",
        )
        self.layer_norm = self._norm("layer_norm")
        self.input_projector = self._dense("input_projector", intermediate_dim)
        self.gate_projector = None
        if use_gated_activation:
            self.gate_projector = self._dense(
                "gate_projector", intermediate_dim
            )
        self.output_projector = self._dense("output_projector", hidden_dim)
        self.attention_dropout = self._dropout("attention_dropout")
        self.inner_dropout = self._dropout("inner_dropout")
        self.output_dropout = self._dropout("output_dropout")

    def _norm(self, name):
        return T5LayerNorm(
            self.layer_norm_epsilon, dtype=self.dtype_policy, name=name
        )

    def _dropout(self, name):
        return SeededDropout(self.dropout, dtype=self.dtype_policy, name=name)

    def _dense(self, name, units):
        fan_in = (
            self.intermediate_dim
            if name == "output_projector"
            else self.hidden_dim
        )
        return keras.layers.Dense(
            units,
            use_bias=False,
            kernel_initializer=keras.initializers.RandomNormal(
                stddev=fan_in**-0.5
            ),
            dtype=self.dtype_policy,
            name=name,
        )

    def build(self, input_shape, *args, **kwargs):
        inner_shape = (*input_shape[:-1], self.intermediate_dim)
        self.self_attention_layer_norm.build(input_shape)
        self.self_attention.build(input_shape)
        self.layer_norm.build(input_shape)
        self.input_projector.build(input_shape)
        if self.gate_projector is not None:
            self.gate_projector.build(input_shape)
        self.output_projector.build(inner_shape)

    def call(self, inputs, attention_mask, position_bias, training=None):
        # One seed for the layer, so that dropout is the same whether or not
        # the layer is computed again.
        seed = next_dropout_seed() if training else None

        # What has a gradient must be an argument, the rest must not.
        def transform(inputs, position_bias):
            # The backward pass comes here again, outside of any other scope.
            with dropout_seed(seed):
                return self._transform(
                    inputs, position_bias, attention_mask, training
                )

        if training and self.rematerialize:
            transform = rematerialized(transform)
        return transform(inputs, position_bias)

    def _transform(self, inputs, position_bias, attention_mask, training):
        attended = self.self_attention(
            self.self_attention_layer_norm(inputs),
            attention_mask=attention_mask,
            position_bias=position_bias,
            training=training,
        )
        hidden = inputs + self.attention_dropout(attended, training=training)
        normalised = self.layer_norm(hidden)
        inner = ACTIVATIONS[self.activation](self.input_projector(normalised))
        if self.gate_projector is not None:
            inner = inner * self.gate_projector(normalised)
        inner = self.inner_dropout(inner, training=training)
        output = self.output_projector(inner)
        return hidden + self.output_dropout(output, training=training)

    def compute_output_shape(self, input_shape, *args, **kwargs):
        return input_shape

    def get_config(self):
        return {
            **super().get_config(),
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "num_heads": self.num_heads,
            "key_value_dim": self.key_value_dim,
            "dropout": self.dropout,
            "activation": self.activation,
            "use_gated_activation": self.use_gated_activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "rematerialize": self.rematerialize,
        }
