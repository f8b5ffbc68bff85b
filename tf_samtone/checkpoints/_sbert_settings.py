"""What the modules of a sentence-transformers folder are set to."""

import pathlib
from dataclasses import dataclass
from typing import Any

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.errors import CorruptFileError, MismatchError

__all__ = [
    "SbertDense",
    "check_normalize",
    "check_pooling",
    "read_dense",
    "read_optional",
]

# In the order in which the modes that are on are joined.
_OLD_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Last part of torch's class → Keras's name of the same function.
_ACTIVATIONS = {"Identity": "linear", "Tanh": "tanh", "ReLU": "relu"}
_EMBEDDING = "sentence_embedding"


@dataclass(frozen=True, kw_only=True)
class SbertDense:
    """A Dense module.

    Attributes:
        folder: where its weights are.
        in_features: int.
        out_features: int.
        use_bias: bool.
        activation: str. Name of a Keras activation.
    """

    folder: pathlib.Path
    in_features: int
    out_features: int
    use_bias: bool
    activation: str


def check_pooling(folder: pathlib.Path) -> bool:
    """Refuse all but the mean over tokens.

    Args:
        folder: of a Pooling module.

    Returns:
        bool: whether a prompt counts in the mean.

    Raises:
        CorruptFileError: if the config is missing or malformed.
        MismatchError: if it asks for another pooling.
    """
    path = folder / "config.json"
    config = read_json_object(path)
    if "pooling_mode" in config:
        mode = config["pooling_mode"]
        modes = mode if isinstance(mode, list) else [mode]
    else:
        on = [mode for key, mode in _OLD_MODES.items() if config.get(key)]
        # What the module takes for granted if its config names no mode.
        modes = on or ["mean"]
    if modes != ["mean"]:
        raise MismatchError(
            f"Expected the mean over tokens in {path}. Received: "
            f"pooling_mode={modes}. A model with another pooling cannot be "
            "loaded."
        )
    return bool(config.get("include_prompt", True))


def read_dense(folder: pathlib.Path) -> SbertDense:
    """Read the config of a Dense module.

    Args:
        folder: of the module.

    Returns:
        `SbertDense`.

    Raises:
        CorruptFileError: if the config is missing or malformed.
        MismatchError: if `keras.layers.Dense` is no such module.
    """
    path = folder / "config.json"
    config = read_json_object(path)
    sizes = [config.get("in_features"), config.get("out_features")]
    if any(type(size) is not int or size < 1 for size in sizes):
        raise CorruptFileError(
            "Expected `in_features` and `out_features`, integers > 0, in "
            f"{path}. Received: {sizes}. Get the file again."
        )
    _check_names(path, config)
    if config.get("use_residual"):
        raise MismatchError(
            f"Expected a Dense module without a residual in {path}. Received: "
            f"use_residual={config['use_residual']!r}. Such a model cannot be "
            "loaded."
        )
    # What the module takes for granted if its config says nothing.
    name = config.get("activation_function", "torch.nn.Tanh")
    is_torch = isinstance(name, str) and name.startswith("torch.nn.")
    activation = _ACTIVATIONS.get(name.rsplit(".", 1)[-1]) if is_torch else None
    if activation is None:
        raise MismatchError(
            f"Expected an activation of torch.nn, one of {list(_ACTIVATIONS)}, "
            f"in {path}. Received: activation_function={name!r}. A model with "
            "another one cannot be loaded."
        )
    return SbertDense(
        folder=folder,
        in_features=config["in_features"],
        out_features=config["out_features"],
        use_bias=bool(config.get("bias", True)),
        activation=activation,
    )


def check_normalize(folder: pathlib.Path) -> None:
    """Refuse a Normalize module that does not scale the embedding.

    Args:
        folder: of the module; it may be absent, as an empty folder often is.

    Raises:
        CorruptFileError: if there is a malformed config.
        MismatchError: if the module scales something else.
    """
    path = folder / "config.json"
    _check_names(path, read_optional(path))


def read_optional(path: pathlib.Path) -> dict[str, Any]:
    """Return the object in a JSON file, or an empty one if there is no file.

    Args:
        path: the file.

    Returns:
        The decoded object.

    Raises:
        CorruptFileError: if there is a file that is not UTF-8 JSON with an
            object.
    """
    return read_json_object(path) if path.is_file() else {}


def _check_names(path: pathlib.Path, config: dict[str, Any]) -> None:
    """Refuse a module that reads or writes anything but the embedding."""
    for key in ("module_input_name", "module_output_name"):
        name = config.get(key)
        if name not in (None, _EMBEDDING):
            raise MismatchError(
                f"Expected {key}={_EMBEDDING!r} in {path}. Received: "
                f"{key}={name!r}. A model that works on its tokens one by one "
                "cannot be loaded."
            )
