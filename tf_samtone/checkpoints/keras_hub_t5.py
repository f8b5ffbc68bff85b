"""T5 encoders from KerasHub's T5 presets."""

import functools
import gc
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import keras
import keras_hub

from tf_samtone.checkpoints._assign import assign_streamed, check_equal
from tf_samtone.checkpoints._encoder_tensors import encoder_variables
from tf_samtone.checkpoints._keras_hub_config import (
    DEFAULTS,
    KERAS_HUB_CONFIG,
    SIZES,
    encoder_arguments,
    other_model_error,
    read_layout_and_config,
)
from tf_samtone.checkpoints._keras_hub_layout import (
    ENCODER_LAYOUT,
    EncoderLayout,
)
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
)
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.t5_encoder import T5Encoder

__all__ = ["assign_keras_hub_t5", "load_keras_hub_t5"]


def load_keras_hub_t5(
    preset: str | os.PathLike[str],
    dtype: str | None = None,
    *,
    dropout: float | None = None,
) -> T5Encoder:
    """Load the encoder of a KerasHub T5 preset.

    From a folder its tensors are read a few rows at a time and the decoder not
    at all, so that memory stays near that of the encoder. Weights that have to
    be downloaded, and files of Keras versions with other names in them, go
    through KerasHub's own loader: the whole backbone is in memory until its
    encoder, which is not copied, is left of it.

    Args:
        preset: a folder that `T5Backbone.save_to_preset` wrote, or that of a
            `T5Encoder`; a name such as `"t5_1.1_small"`; or a handle such as
            `"hf://org/repository"`.
        dtype: str or dtype policy of the encoder. Defaults to `None`, the
            global policy.
        dropout: float in [0, 1). Defaults to the preset's.

    Returns:
        The encoder with its weights.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        InvalidInputError: if there is no such preset or folder, or the
            weights are not of a float type.
        MismatchError: if the preset is not a T5 that `T5Encoder` can hold, or
            the weights are not those that its config implies.
    """
    preset = os.fspath(preset)
    if pathlib.Path(preset).is_dir():
        return _load_folder(pathlib.Path(preset), dtype, dropout)
    names = sorted(keras_hub.models.T5Backbone.presets)
    if preset not in names and "://" not in preset:
        raise InvalidInputError(
            "Expected `preset` to be a folder, a handle such as "
            f"'hf://org/repository', or one of {names}. Received: "
            f"preset={preset!r}. Check the spelling or the path."
        )
    backbone = keras_hub.models.Backbone.from_preset(preset, dtype="float32")
    if not isinstance(backbone, keras_hub.models.T5Backbone):
        raise other_model_error(preset, type(backbone).__name__)
    config = {name: getattr(backbone, name) for name in (*SIZES, *DEFAULTS)}
    config["activation"] = keras.activations.serialize(backbone.activation)
    arguments = encoder_arguments(preset, config)
    values = _encoder_values(backbone)
    # Before the encoder is made: its decoder is of no use any more.
    del backbone
    return _with_values(preset, arguments, values, dtype, dropout)


def assign_keras_hub_t5(
    encoder: T5Encoder,
    directory: str | os.PathLike[str],
    *,
    shared: Sequence[keras.Variable] = (),
) -> None:
    """Copy the weights of a `T5Encoder` preset into an encoder of its sizes.

    Args:
        encoder: `T5Encoder`; changed in place.
        directory: folder with `config.json` and weights.
        shared: variables that have to be equal already, and are left alone.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        MismatchError: if the weights are not those of such an encoder, or a
            shared one has another value.
    """
    weights = KerasHubWeights(directory)
    names = ENCODER_LAYOUT.names(weights, EncoderSize.of_encoder(encoder))
    if names is None:
        raise MismatchError(
            "Expected the weights of a `T5Encoder`. Received: "
            f"{weights.path} with {sorted(weights.shapes)[:3]} and others. "
            "Save the preset again with this version of Keras."
        )
    fixed = {id(variable) for variable in shared}
    for name, variable in zip(names, encoder_variables(encoder), strict=True):
        read_rows = functools.partial(weights.read_rows, name)
        if id(variable) in fixed:
            check_equal(variable, read_rows, weights.path)
        else:
            assign_streamed(variable, read_rows)


def _load_folder(
    directory: pathlib.Path, dtype: str | None, dropout: float | None
) -> T5Encoder:
    layout, arguments = read_layout_and_config(directory / KERAS_HUB_CONFIG)
    weights = KerasHubWeights(directory)
    sizes = {k: arguments[k] for k in EncoderSize.__dataclass_fields__}
    names = layout.names(weights, EncoderSize(**sizes))
    if names is None:
        return _load_other_layout(
            weights.path, layout, arguments, dtype, dropout
        )
    encoder = _new_encoder(arguments, dtype, dropout)
    _assign(encoder, weights, names)
    return encoder


def _load_other_layout(
    path: pathlib.Path,
    layout: EncoderLayout,
    arguments: dict[str, Any],
    dtype: str | None,
    dropout: float | None,
) -> T5Encoder:
    """Load a file of another version of Keras, which knows its names."""
    made: Any
    if layout.has_decoder:
        options = {k: v for k, v in arguments.items() if k != "rematerialize"}
        made = keras_hub.models.T5Backbone(**options, dtype="float32")
    else:
        made = T5Encoder(**arguments, dtype="float32")
    try:
        made.load_weights(path)
    except (ValueError, KeyError) as error:
        raise MismatchError(
            f"Expected in {path} the weights of the model that "
            f"{KERAS_HUB_CONFIG} describes. Received: {error} Use the config "
            "that belongs to the weights."
        ) from error
    if layout.has_decoder:
        values = _encoder_values(made)
    else:
        values = [variable.value for variable in encoder_variables(made)]
    del made
    return _with_values(str(path), arguments, values, dtype, dropout)


def _new_encoder(
    arguments: dict[str, Any], dtype: str | None, dropout: float | None
) -> T5Encoder:
    if dropout is not None:
        arguments = {**arguments, "dropout": dropout}
    return T5Encoder(**arguments, dtype=dtype)


def _assign(
    encoder: T5Encoder, weights: KerasHubWeights, names: list[str]
) -> None:
    for name, variable in zip(names, encoder_variables(encoder), strict=True):
        assign_streamed(variable, functools.partial(weights.read_rows, name))


def _with_values(
    source: str,
    arguments: dict[str, Any],
    values: list[Any],
    dtype: str | None,
    dropout: float | None,
) -> T5Encoder:
    """Return an encoder that takes over tensors, in the order of its own."""
    # A Keras model is full of cycles, so nothing goes before this.
    gc.collect()
    encoder = _new_encoder(arguments, dtype, dropout)
    # From the end, so that what is taken over is released at once.
    for variable in reversed(encoder_variables(encoder)):
        # No copy: TensorFlow lets both variables hold the same buffer.
        variable.assign(values.pop())
        if not keras.ops.all(keras.ops.isfinite(variable)):
            raise CorruptFileError(
                f"Expected finite weights in {source}. Received: NaN or "
                f"infinity in {variable.path}. Use another checkpoint."
            )
    return encoder


def _encoder_values(backbone: keras_hub.models.T5Backbone) -> list[Any]:
    """Return the tensors of an encoder, in the order of `encoder_variables`."""
    layers = backbone.encoder_transformer_layers
    variables = [
        backbone.token_embedding.embeddings,
        layers[0].self_attention.relative_attention_bias,
    ]
    for layer in layers:
        attention = layer.self_attention
        variables += [
            layer.self_attention_layer_norm.weight,
            attention.query_projector.kernel,
            attention.key_projector.kernel,
            attention.value_projector.kernel,
            attention.output_projector.kernel,
            layer.layer_norm.weight,
            layer.input_projector.kernel,
        ]
        if backbone.use_gated_activation:
            variables.append(layer.gate_projector.kernel)
        variables.append(layer.output_projector.kernel)
    variables.append(backbone.encoder_layer_norm.weight)
    # Eager tensors share the buffers of the variables.
    return [variable.value.read_value() for variable in variables]
