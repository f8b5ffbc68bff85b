"""T5 encoders from Hugging Face folders."""

import functools
import os
import pathlib
from collections.abc import Sequence
from typing import Any

from tf_samtone.checkpoints._assign import assign_streamed
from tf_samtone.checkpoints._encoder_tensors import (
    EncoderTensor,
    encoder_tensors,
    encoder_variables,
)
from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.errors import CorruptFileError, MismatchError
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.t5_position_bias import MAX_DISTANCE, NUM_BUCKETS

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
_EMBEDDING_NAMES = ("shared.weight", "encoder.embed_tokens.weight")
# The rest of a full encoder-decoder checkpoint.
_IGNORED_PREFIXES = ("decoder.", "lm_head.")


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
        "dropout": float(config.get("dropout_rate", 0.1)),
        "layer_norm_epsilon": float(config.get("layer_norm_epsilon", 1e-6)),
    }


def load_hugging_face_t5(
    directory: str | os.PathLike[str],
    dtype: str | None = None,
    *,
    dropout: float | None = None,
    pickled_files: Sequence[str] = (),
) -> T5Encoder:
    """Load the encoder of a Hugging Face T5 folder.

    Encoder-only and full checkpoints are read, in one file or in shards, in
    float32, float16 or bfloat16; decoder weights are left alone. Tensors are
    copied a few rows at a time, so that memory stays near that of the encoder.

    Args:
        directory: folder with `config.json` and `model.safetensors` or
            `model.safetensors.index.json`.
        dtype: str or dtype policy of the encoder. Defaults to `None`, the
            global policy.
        dropout: float in [0, 1). Defaults to the config's.
        pickled_files: names of pickled weight files that may be read if there
            are no others, e.g. `("pytorch_model.bin",)`. Needs torch. Defaults
            to none.

    Returns:
        The encoder with its weights.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        InvalidInputError: if the weights are pickled or not of a float type.
        MismatchError: if the weights are not those that the config implies.
    """
    arguments = read_hugging_face_config(directory)
    if dropout is not None:
        arguments["dropout"] = dropout
    # Before the encoder is made, so that a wrong folder costs no memory.
    folder = TensorFolder(directory, pickled_files=pickled_files)
    sizes = {k: arguments[k] for k in EncoderSize.__dataclass_fields__}
    tensors = _stored_tensors(directory, folder, EncoderSize(**sizes))
    encoder = T5Encoder(**arguments, dtype=dtype)
    _assign(encoder, folder, tensors)
    return encoder


def assign_hugging_face_t5(
    directory: str | os.PathLike[str],
    encoder: T5Encoder,
    *,
    pickled_files: Sequence[str] = (),
) -> None:
    """Give an encoder the weights of a Hugging Face T5 folder.

    Args:
        directory: as for `load_hugging_face_t5`.
        encoder: `T5Encoder` of the folder's sizes.
        pickled_files: as for `load_hugging_face_t5`.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        InvalidInputError: if the weights are pickled or not of a float type.
        MismatchError: if the weights are not those of the encoder.
    """
    folder = TensorFolder(directory, pickled_files=pickled_files)
    size = EncoderSize.of_encoder(encoder)
    _assign(encoder, folder, _stored_tensors(directory, folder, size))


def _assign(
    encoder: T5Encoder,
    folder: TensorFolder,
    tensors: list[tuple[str, EncoderTensor]],
) -> None:
    variables = encoder_variables(encoder)
    for (name, tensor), variable in zip(tensors, variables, strict=True):
        assign_streamed(
            variable,
            functools.partial(folder.read_rows, name),
            transposed=tensor.is_kernel,
        )


def _expect(path: pathlib.Path, key: str, value: Any, known: list[Any]) -> None:
    if value not in known:
        raise MismatchError(
            f"Expected `{key}` in {path} to be one of {known}. Received: "
            f"{key}={value!r}. Use a T5 1.0 or 1.1 checkpoint."
        )


def _stored_tensors(
    directory: str | os.PathLike[str],
    folder: TensorFolder,
    size: EncoderSize,
) -> list[tuple[str, EncoderTensor]]:
    """Pair the encoder's tensors with their names in the folder.

    Raises:
        MismatchError: names missing, surplus and misshapen tensors.
    """
    embedding, *others = encoder_tensors(size)
    stored_embedding = next(
        (name for name in _EMBEDDING_NAMES if name in folder.shapes),
        embedding.hugging_face,
    )
    tensors = [
        (stored_embedding, embedding),
        *[(tensor.hugging_face, tensor) for tensor in others],
    ]
    expected = {name for name, _ in tensors}
    missing = sorted(expected - folder.shapes.keys())
    surplus = sorted(
        name
        for name in folder.shapes.keys() - expected
        if not name.startswith(_IGNORED_PREFIXES)
        and name not in _EMBEDDING_NAMES
    )
    if missing or surplus:
        raise MismatchError(
            f"Expected in {directory} the tensors of the encoder that its "
            f"{CONFIG_FILE} describes. Received: missing={missing}, "
            f"surplus={surplus}. Use the config that belongs to the weights."
        )
    for name, tensor in tensors:
        if folder.shapes[name] != tensor.torch_shape:
            raise MismatchError(
                f"Expected {name} of shape {tensor.torch_shape}, as "
                f"{CONFIG_FILE} in {directory} implies. Received: "
                f"shape={folder.shapes[name]}. Use the config that belongs "
                "to the weights."
            )
    return tensors
