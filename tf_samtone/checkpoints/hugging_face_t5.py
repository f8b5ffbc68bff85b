"""T5 encoders from Hugging Face folders."""

import functools
import os
from collections.abc import Sequence

from tf_samtone.checkpoints._assign import assign_streamed
from tf_samtone.checkpoints._encoder_tensors import (
    EncoderTensor,
    encoder_variables,
)
from tf_samtone.checkpoints._hugging_face_config import (
    read_hugging_face_config,
)
from tf_samtone.checkpoints._hugging_face_layout import stored_tensors
from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.t5_encoder import T5Encoder

__all__ = ["assign_hugging_face_t5", "load_hugging_face_t5"]


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
    size = EncoderSize.of_arguments(arguments)
    tensors = stored_tensors(directory, folder, size)
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
    _assign(encoder, folder, stored_tensors(directory, folder, size))


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
