"""T5 encoder as a KerasHub backbone."""

import keras
import keras_hub
from keras import ops

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.seeded_dropout import SeededDropout
from tf_samtone.models.t5_encoder_layer import T5EncoderLayer
from tf_samtone.models.t5_layer_norm import T5LayerNorm
from tf_samtone.models.t5_position_bias import T5PositionBias


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5Encoder(keras_hub.models.Backbone):
    """T5 encoder without a decoder.

    KerasHub's `T5Backbone` always builds the decoder too; this one holds the
    encoder only, keeps KerasHub's names of layers and inputs, and computes
    norms and softmax in float32.

    >>> encoder = T5Encoder(
    ...     vocabulary_size=384, num_layers=2, num_heads=2, hidden_dim=16,
    ...     intermediate_dim=32, key_value_dim=8,
    ... )
    >>> token_ids = np.array([[5, 7, 1]])
    >>> encoder({"token_ids": token_ids, "padding_mask": token_ids > 0}).shape
    TensorShape([1, 3, 16])

    Args:
        vocabulary_size: int. Rows of the embedding table.
        num_layers: int.
        num_heads: int.
        hidden_dim: int. Width of the hidden states.
        intermediate_dim: int. Width inside the feed-forward part.
        key_value_dim: int. Width of one head. Defaults to `64`.
        dropout: float in [0, 1). Defaults to `0.1`.
        activation: str. `"gelu"` (tanh approximation, T5 1.1) or `"relu"`
            (T5 1.0). Defaults to `"gelu"`.
        use_gated_activation: bool. Defaults to `True` (T5 1.1).
        layer_norm_epsilon: float > 0. Defaults to `1e-6`.
        rematerialize: bool. Keeps only the inputs of the layers for the
            backward pass of training and computes the rest once more: memory
            for longer batches or larger sizes, at the price of a second
            forward pass. Equal gradients, also with dropout. Defaults to
            `False`.
        token_embedding: `keras.layers.Embedding` or `None`. A layer to share
            with another encoder; not part of the config. Defaults to `None`,
            a table of its own.
        dtype: str or dtype policy. `"float32"` or `"mixed_bfloat16"`; defaults
            to the global policy. float16 is refused: hidden states of real T5
            weights exceed its range.
        **kwargs: see `keras_hub.models.Backbone`.

    Call arguments:
        token_ids: int32 `[batch, seq]`.
        padding_mask: int32 or bool `[batch, seq]`, 1 at real tokens.

    Returns:
        float `[batch, seq, hidden_dim]`.

    Raises:
        InvalidInputError: if the dtype or the activation cannot be used.

    Reference:
        Raffel et al., 2020, Exploring the Limits of Transfer Learning with a
        Unified Text-to-Text Transformer, https://arxiv.org/abs/1910.10683
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        num_heads,
        hidden_dim,
        intermediate_dim,
        key_value_dim=64,
        dropout=0.1,
        activation="gelu",
        use_gated_activation=True,
        layer_norm_epsilon=1e-6,
        rematerialize=False,
        token_embedding=None,
        dtype=None,
        **kwargs,
    ):
        dtype = _checked_dtype(dtype)
        # === Layers ===
        self.token_embedding = token_embedding or keras.layers.Embedding(
            vocabulary_size,
            hidden_dim,
            embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0),
            dtype=dtype,
            name="token_embedding",
        )
        self.embedding_dropout = SeededDropout(
            dropout, dtype=dtype, name="encoder_embedding_dropout"
        )
        self.position_bias = T5PositionBias(
            num_heads, dtype=dtype, name="position_bias"
        )
        self.encoder_transformer_layers = [
            T5EncoderLayer(
                hidden_dim=hidden_dim,
                intermediate_dim=intermediate_dim,
                num_heads=num_heads,
                key_value_dim=key_value_dim,
                dropout=dropout,
                activation=activation,
                use_gated_activation=use_gated_activation,
                layer_norm_epsilon=layer_norm_epsilon,
                rematerialize=rematerialize,
                dtype=dtype,
                name=f"transformer_encoder_layer_{i}",
            )
            for i in range(num_layers)
        ]
        self.encoder_layer_norm = T5LayerNorm(
            layer_norm_epsilon, dtype=dtype, name="encoder_output_layer_norm"
        )
        self.output_dropout = SeededDropout(
            dropout, dtype=dtype, name="encoder_output_dropout"
        )

        # === Functional model ===
        token_ids = keras.Input((None,), dtype="int32", name="token_ids")
        padding_mask = keras.Input((None,), dtype="int32", name="padding_mask")
        is_token = ops.cast(padding_mask, "bool")
        super().__init__(
            inputs={"token_ids": token_ids, "padding_mask": padding_mask},
            outputs=self._encode(token_ids, is_token[:, None, None, :]),
            dtype=dtype,
            **kwargs,
        )

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.intermediate_dim = intermediate_dim
        self.key_value_dim = key_value_dim
        self.dropout = dropout
        self.activation = activation
        self.use_gated_activation = use_gated_activation
        self.layer_norm_epsilon = layer_norm_epsilon
        self.rematerialize = rematerialize

    def encode_packed(self, inputs, training=None):
        """Encodes rows that hold several texts each.

        A token attends to the tokens of its own segment only. T5's position
        bias depends on nothing but the difference of positions, so every text
        gets the hidden states that it has in a row of its own.

        Args:
            inputs: dict of `token_ids` and `segment_ids`, int32
                `[rows, row_length]`; 0 in `segment_ids` is padding, tokens of
                one text share a number.
            training: bool or `None`. Whether dropout is on.

        Returns:
            float `[rows, row_length, hidden_dim]`.
        """
        segment_ids = inputs["segment_ids"]
        # Padding attends to padding; nothing else does.
        attention_mask = (
            segment_ids[:, None, None, :] == (segment_ids[:, None, :, None])
        )
        return self._encode(inputs["token_ids"], attention_mask, training)

    def _encode(self, token_ids, attention_mask, training=None):
        hidden = self.token_embedding(token_ids)
        hidden = self.embedding_dropout(hidden, training=training)
        position_bias = self.position_bias(hidden)
        for layer in self.encoder_transformer_layers:
            hidden = layer(
                hidden,
                attention_mask=attention_mask,
                position_bias=position_bias,
                training=training,
            )
        hidden = self.encoder_layer_norm(hidden)
        return self.output_dropout(hidden, training=training)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "hidden_dim": self.hidden_dim,
            "intermediate_dim": self.intermediate_dim,
            "key_value_dim": self.key_value_dim,
            "dropout": self.dropout,
            "activation": self.activation,
            "use_gated_activation": self.use_gated_activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "rematerialize": self.rematerialize,
        }


def _checked_dtype(dtype):
    policy = keras.dtype_policies.get(dtype or keras.config.dtype_policy())
    if policy.compute_dtype == "float16":
        raise InvalidInputError(
            "Expected a float32 or bfloat16 compute dtype. Received: "
            f"dtype={policy.name!r}. Hidden states of T5 exceed float16's "
            "largest value, 65504; use 'mixed_bfloat16'."
        )
    return policy
