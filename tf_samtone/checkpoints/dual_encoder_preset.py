"""Dual encoders from the checkpoints of other libraries."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras_hub

from tf_samtone.checkpoints._hugging_face_config import (
    is_hugging_face_folder,
)
from tf_samtone.checkpoints._t5x_arrays import is_t5x_checkpoint
from tf_samtone.checkpoints.hugging_face_t5 import load_hugging_face_t5
from tf_samtone.checkpoints.keras_hub_folder import is_our_keras_hub_preset
from tf_samtone.checkpoints.keras_hub_preset import (
    load_keras_hub_dual_encoder,
)
from tf_samtone.checkpoints.keras_hub_t5 import load_keras_hub_t5
from tf_samtone.checkpoints.sentence_transformers import (
    is_sentence_transformers_folder,
    load_sentence_transformers,
)
from tf_samtone.checkpoints.t5x import load_t5x
from tf_samtone.errors import InvalidInputError
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.load_options import LoadOptions
from tf_samtone.text import load_tokenizer

_CONFIG = "config.json"


def load_dual_encoder(
    preset: str | os.PathLike[str],
    options: LoadOptions | None = None,
    *,
    pickled_files: Sequence[str] = (),
    model_class: type[DualEncoder] = DualEncoder,
) -> DualEncoder:
    """Load a dual encoder, or start one, from any format but our own.

    Args:
        preset: folder of sentence-transformers, Hugging Face, t5x or KerasHub,
            or the name of a KerasHub preset.
        options: `LoadOptions`. Defaults to its defaults.
        pickled_files: names of pickled weight files, relative to the folder,
            that may be read if there are no others. Defaults to none.
        model_class: `DualEncoder` or a subclass.

    Returns:
        `DualEncoder`.

    Raises:
        CorruptFileError: if a file is missing or malformed.
        InvalidInputError: if there is no such preset, or it has no tokenizer.
        MismatchError: if it holds a model that `DualEncoder` is not, or an
            option contradicts it.
    """
    options = options or LoadOptions()
    if is_sentence_transformers_folder(preset):
        return load_sentence_transformers(
            preset,
            options,
            pickled_files=pickled_files,
            model_class=model_class,
        )
    if is_our_keras_hub_preset(preset):
        return load_keras_hub_dual_encoder(
            preset, options, model_class=model_class
        )
    if is_t5x_checkpoint(preset):
        return load_t5x(
            preset, load_tokenizer(preset), options, model_class=model_class
        )
    encoder, tokenizer = _load_t5(preset, options, pickled_files)
    return model_class.from_encoder(encoder, tokenizer, **options.resolved())


def _load_t5(
    preset: str | os.PathLike[str],
    options: LoadOptions,
    pickled_files: Sequence[str],
) -> tuple[Any, Any]:
    if not Path(preset).is_dir():
        encoder = load_keras_hub_t5(
            preset, dtype=options.dtype, dropout=options.dropout
        )
        return encoder, keras_hub.models.T5Tokenizer.from_preset(str(preset))
    if not (Path(preset) / _CONFIG).is_file():
        raise InvalidInputError(
            "Expected `preset` to be a folder of save_to_preset, of KerasHub, "
            "of sentence-transformers, of Hugging Face (config.json, "
            "model.safetensors, spiece.model) or of t5x. Received: "
            f"preset={str(preset)!r}, a folder without {_CONFIG}. Check the "
            "path."
        )
    # The small file first: a folder without it costs no loading of weights.
    tokenizer = load_tokenizer(preset)
    if is_hugging_face_folder(preset):
        encoder = load_hugging_face_t5(
            preset,
            dtype=options.dtype,
            dropout=options.dropout,
            pickled_files=pickled_files,
        )
        return encoder, tokenizer
    encoder = load_keras_hub_t5(
        preset, dtype=options.dtype, dropout=options.dropout
    )
    return encoder, tokenizer
