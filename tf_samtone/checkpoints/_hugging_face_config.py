"""What the config of a Hugging Face T5 folder says."""

import os
import pathlib
from typing import Any

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.errors import CorruptFileError, MismatchError
from tf_samtone.models.encoder_size import MAX_DISTANCE, NUM_BUCKETS

__all__ = [
    "CONFIG_FILE",
    "FEED_FORWARD",
    "POSITION_BIAS",
    "SIZES",
    "is_hugging_face_folder",
    "read_hugging_face_config",
]

CONFIG_FILE = "config.json"
# Hugging Face's "gated-gelu" and "gelu_new" are the tanh approximation, which
# T5Encoder calls "gelu". An ungated "gelu" is the exact form: not a T5.
FEED_FORWARD = {
    "relu": {"activation": "relu", "use_gated_activation": False},
    "gelu_new": {"activation": "gelu", "use_gated_activation": False},
    "gated-relu": {"activation": "relu", "use_gated_activation": True},
    "gated-gelu": {"activation": "gelu", "use_gated_activation": True},
    "gated-gelu_new": {"activation": "gelu", "use_gated_activation": True},
}
POSITION_BIAS = {
    "relative_attention_num_buckets": NUM_BUCKETS,
    "relative_attention_max_distance": MAX_DISTANCE,
}
SIZES = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "hidden_dim": "d_model",
    "intermediate_dim": "d_ff",
    "key_value_dim": "d_kv",
}


def is_hugging_face_folder(directory: str | os.PathLike[str]) -> bool:
    """Whether a folder has Hugging Face's `config.json`.

    KerasHub's presets have a file of that name too, without `model_type`.

    Args:
        directory: any path; it need not exist.

    Returns:
        bool.

    Raises:
        CorruptFileError: if there is a `config.json` that is not JSON.
    """
    path = pathlib.Path(directory, CONFIG_FILE)
    return path.is_file() and "model_type" in read_json_object(path)


def read_hugging_face_config(
    directory: str | os.PathLike[str],
) -> dict[str, Any]:
    """Read the `T5Encoder` arguments out of a Hugging Face folder.

    Args:
        directory: folder with `config.json`.

    Returns:
        dict of constructor arguments.

    Raises:
        CorruptFileError: if `config.json` is missing, malformed or lacks a
            size.
        MismatchError: if it describes a model that `T5Encoder` is not.
    """
    path = pathlib.Path(directory, CONFIG_FILE)
    if not path.is_file():
        raise CorruptFileError(
            f"Expected a Hugging Face folder with {CONFIG_FILE}. Received: "
            f"directory={str(directory)!r}. Check the path."
        )
    config = read_json_object(path)
    feed_forward = config.get("feed_forward_proj", "relu")
    _expect(path, "model_type", config.get("model_type"), ["t5"])
    _expect(path, "feed_forward_proj", feed_forward, list(FEED_FORWARD))
    # A T5 with other buckets would load without complaint and be wrong.
    for key, built in POSITION_BIAS.items():
        _expect(path, key, config.get(key, built), [built])
    sizes = {}
    for argument, key in SIZES.items():
        value = config.get(key)
        if type(value) is not int or value < 1:
            raise CorruptFileError(
                f"Expected `{key}`, an integer > 0, in {path}. Received: "
                f"{key}={value!r}. Get the file again."
            )
        sizes[argument] = value
    return {
        **sizes,
        **FEED_FORWARD[feed_forward],
        "dropout": _number(path, config, "dropout_rate", 0.1),
        "layer_norm_epsilon": _number(path, config, "layer_norm_epsilon", 1e-6),
    }


def _expect(path: pathlib.Path, key: str, value: Any, known: list[Any]) -> None:
    if value not in known:
        raise MismatchError(
            f"Expected `{key}` in {path} to be one of {known}. Received: "
            f"{key}={value!r}. Use a T5 1.0 or 1.1 checkpoint."
        )


def _number(
    path: pathlib.Path, config: dict[str, Any], key: str, default: float
) -> float:
    value = config.get(key, default)
    # Not isinstance: True is an int.
    if type(value) not in (int, float):
        raise CorruptFileError(
            f"Expected `{key}`, a number, in {path}. Received: "
            f"{key}={value!r}. Get the file again."
        )
    return float(value)
