"""T5 encoders from KerasHub's T5 presets."""

import os
import pathlib
from collections.abc import Iterator

import keras
import keras_hub

from tf_samtone.errors import InvalidInputError, MismatchError
from tf_samtone.models.t5_encoder import T5Encoder

# KerasHub's presets of T5 1.1 say "gelu", which is the exact form there. The
# weights were trained with the tanh approximation, T5Encoder's "gelu".
_ACTIVATIONS = ("gelu", "relu")


def load_keras_hub_t5(
    preset: str | os.PathLike[str],
    dtype: str | None = None,
    *,
    dropout: float | None = None,
) -> T5Encoder:
    """Load the encoder of a KerasHub T5 preset.

    The whole backbone, decoder included, is in memory while its encoder is
    copied.

    Args:
        preset: a name such as `"t5_1.1_small"`, a handle such as
            `"hf://org/repository"`, or a folder that
            `T5Backbone.save_to_preset` wrote.
        dtype: str or dtype policy of the encoder. Defaults to `None`, the
            global policy.
        dropout: float in [0, 1). Defaults to the preset's.

    Returns:
        The encoder with its weights.

    Raises:
        InvalidInputError: if there is no such preset or folder.
        MismatchError: if the preset is not a T5 that `T5Encoder` can hold.
    """
    preset = os.fspath(preset)
    names = sorted(keras_hub.models.T5Backbone.presets)
    is_known = preset in names or "://" in preset
    if not is_known and not pathlib.Path(preset).is_dir():
        raise InvalidInputError(
            "Expected `preset` to be a folder, a handle such as "
            f"'hf://org/repository', or one of {names}. Received: "
            f"preset={preset!r}. Check the spelling or the path."
        )
    backbone = keras_hub.models.Backbone.from_preset(preset, dtype="float32")
    if not isinstance(backbone, keras_hub.models.T5Backbone):
        raise MismatchError(
            "Expected a preset of a `T5Backbone`. Received: "
            f"preset={preset!r} of a `{type(backbone).__name__}`. Use a T5 "
            "preset."
        )
    encoder = _empty_encoder(backbone, dtype, dropout)
    for source, target in _pairs(backbone, encoder):
        target.assign(source.numpy())
    return encoder


def _empty_encoder(
    backbone: keras_hub.models.T5Backbone,
    dtype: str | None,
    dropout: float | None,
) -> T5Encoder:
    """Return an encoder of the backbone's sizes with initial weights."""
    activation = keras.activations.serialize(backbone.activation)
    if activation not in _ACTIVATIONS:
        raise MismatchError(
            f"Expected a T5 with an activation of {_ACTIVATIONS}. Received: "
            f"activation={activation!r}. Use a T5 1.0 or 1.1 preset."
        )
    return T5Encoder(
        vocabulary_size=backbone.vocabulary_size,
        num_layers=backbone.num_layers,
        num_heads=backbone.num_heads,
        hidden_dim=backbone.hidden_dim,
        intermediate_dim=backbone.intermediate_dim,
        # `or`: KerasHub's default is None, the even share of the width.
        key_value_dim=backbone.key_value_dim
        or backbone.hidden_dim // backbone.num_heads,
        dropout=backbone.dropout if dropout is None else dropout,
        activation=activation,
        use_gated_activation=backbone.use_gated_activation,
        layer_norm_epsilon=backbone.layer_norm_epsilon,
        dtype=dtype,
    )


def _pairs(
    backbone: keras_hub.models.T5Backbone, encoder: T5Encoder
) -> Iterator[tuple[keras.Variable, keras.Variable]]:
    """Yield each weight of the backbone's encoder with its place in ours."""
    yield (
        backbone.token_embedding.embeddings,
        encoder.token_embedding.embeddings,
    )
    sources = backbone.encoder_transformer_layers
    yield (
        sources[0].self_attention.relative_attention_bias,
        encoder.position_bias.relative_attention_bias,
    )
    yield (
        backbone.encoder_layer_norm.weight,
        encoder.encoder_layer_norm.weight,
    )
    for source, target in zip(
        sources, encoder.encoder_transformer_layers, strict=True
    ):
        for name in ("query", "key", "value", "output"):
            projector = f"{name}_projector"
            yield (
                getattr(source.self_attention, projector).kernel,
                getattr(target.self_attention, projector).kernel,
            )
        for name in ("self_attention_layer_norm", "layer_norm"):
            yield getattr(source, name).weight, getattr(target, name).weight
        names = ["input_projector", "output_projector"]
        if target.use_gated_activation:
            names.append("gate_projector")
        for name in names:
            yield getattr(source, name).kernel, getattr(target, name).kernel
