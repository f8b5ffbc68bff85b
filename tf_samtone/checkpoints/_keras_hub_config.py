"""What the config of a KerasHub T5 preset says."""

import os
import pathlib
from typing import Any

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._keras_hub_layout import (
    BACKBONE_LAYOUT,
    ENCODER_LAYOUT,
    EncoderLayout,
)
from tf_samtone.errors import CorruptFileError, MismatchError

__all__ = [
    "DEFAULTS",
    "KERAS_HUB_CONFIG",
    "SIZES",
    "encoder_arguments",
    "other_model_error",
    "read_keras_hub_config",
    "read_layout_and_config",
]

KERAS_HUB_CONFIG = "config.json"
SIZES = (
    "vocabulary_size",
    "num_layers",
    "num_heads",
    "hidden_dim",
    "intermediate_dim",
)
# What a T5Backbone is if its config does not say.
DEFAULTS = {
    "key_value_dim": None,
    "dropout": 0.1,
    "activation": "relu",
    "use_gated_activation": True,
    "layer_norm_epsilon": 1e-6,
}
_LAYOUTS = {
    "keras_hub>T5Backbone": BACKBONE_LAYOUT,
    # From before KerasNLP was renamed.
    "keras_nlp>T5Backbone": BACKBONE_LAYOUT,
    "tf_samtone>T5Encoder": ENCODER_LAYOUT,
}
# KerasHub's presets of T5 1.1 say "gelu", which is the exact form there. The
# weights were trained with the tanh approximation, T5Encoder's "gelu".
_ACTIVATIONS = ("gelu", "relu")


def read_keras_hub_config(
    directory: str | os.PathLike[str],
) -> dict[str, Any]:
    """Read the `T5Encoder` arguments out of a KerasHub preset.

    The config is read as JSON; nothing in it is imported or called.

    Args:
        directory: folder with `config.json`.

    Returns:
        dict of constructor arguments.

    Raises:
        CorruptFileError: if `config.json` is missing, malformed or lacks a
            size.
        MismatchError: if it describes a model that `T5Encoder` is not.
    """
    return read_layout_and_config(pathlib.Path(directory, KERAS_HUB_CONFIG))[1]


def read_layout_and_config(
    path: pathlib.Path,
) -> tuple[EncoderLayout, dict[str, Any]]:
    """Read a config, and where the weights that belong to it are.

    Args:
        path: the config.

    Returns:
        `EncoderLayout` and dict of constructor arguments.

    Raises:
        CorruptFileError, MismatchError: as `read_keras_hub_config`.
    """
    serialized = read_json_object(path)
    name = str(serialized.get("registered_name"))
    if name not in _LAYOUTS:
        raise other_model_error(str(path.parent), name.rpartition(">")[2])
    config = serialized.get("config")
    if not isinstance(config, dict):
        raise CorruptFileError(
            f"Expected an object `config` in {path}. Received: "
            f"config={config!r}. Get the file again."
        )
    arguments = encoder_arguments(str(path), {**DEFAULTS, **config})
    if config.get("rematerialize") is True:
        arguments["rematerialize"] = True
    return _LAYOUTS[name], arguments


def other_model_error(preset: str, name: str) -> MismatchError:
    """Return the error of a preset of another class.

    Args:
        preset: its name or folder.
        name: of the class.

    Returns:
        `MismatchError`.
    """
    return MismatchError(
        f"Expected a preset of a `T5Backbone`. Received: preset={preset!r} of "
        f"a `{name}`. Use a T5 preset."
    )


def encoder_arguments(source: str, config: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a `T5Encoder` out of those of a backbone.

    Args:
        source: where they come from, for the messages.
        config: arguments of a `T5Backbone`, with all of `DEFAULTS`.

    Returns:
        dict of constructor arguments.

    Raises:
        CorruptFileError: if one is of another type.
        MismatchError: if the activation is none of T5's.
    """
    sizes = {name: config.get(name) for name in SIZES}
    # KerasHub's default is None, the even share of the width.
    key_value_dim = config["key_value_dim"]
    if key_value_dim is not None:
        sizes["key_value_dim"] = key_value_dim
    for name, value in sizes.items():
        if type(value) is not int or value < 1:
            raise CorruptFileError(
                f"Expected `{name}`, an integer > 0, in {source}. Received: "
                f"{name}={value!r}. Get the file again."
            )
    for name in ("dropout", "layer_norm_epsilon"):
        if not isinstance(config[name], int | float):
            raise CorruptFileError(
                f"Expected `{name}`, a number, in {source}. Received: "
                f"{name}={config[name]!r}. Get the file again."
            )
    activation = config["activation"]
    if activation not in _ACTIVATIONS:
        raise MismatchError(
            f"Expected a T5 with an activation of {_ACTIVATIONS}. Received: "
            f"activation={activation!r} in {source}. Use a T5 1.0 or 1.1 "
            "preset."
        )
    if key_value_dim is None:
        sizes["key_value_dim"] = config["hidden_dim"] // config["num_heads"]
    return {
        **sizes,
        "dropout": float(config["dropout"]),
        "activation": activation,
        "use_gated_activation": bool(config["use_gated_activation"]),
        "layer_norm_epsilon": float(config["layer_norm_epsilon"]),
    }
