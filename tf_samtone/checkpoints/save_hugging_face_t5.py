"""Dual encoders as Hugging Face folders of their T5 encoders."""

import os
import pathlib

from tf_samtone._files import atomic_directory
from tf_samtone.checkpoints._encoder_folder import (
    check_exportable,
    sides,
    write_encoder,
    write_projection,
)
from tf_samtone.checkpoints._tensor_files import (
    MAX_SHARD_BYTES,
    check_shard_bytes,
)
from tf_samtone.checkpoints.model_card import ModelCard
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.tower import Tower

PROJECTION_FILE = "projection.safetensors"


def save_hugging_face_t5(
    model: DualEncoder,
    directory: str | os.PathLike[str],
    *,
    card: ModelCard | None = None,
    max_shard_bytes: int = MAX_SHARD_BYTES,
    overwrite: bool = False,
) -> None:
    """Write a folder that `transformers.T5EncoderModel` loads.

    One tower becomes the folder itself; two become its sub-folders `query`
    and `document`. A folder has `config.json`, `model.safetensors` in float32
    (or shards and `model.safetensors.index.json`), `spiece.model`,
    `tokenizer.json`, `tokenizer_config.json` and `special_tokens_map.json`.

    `T5EncoderModel` ends with the hidden states. It has no place for what
    follows, so a projection lies beside it, in `projection.safetensors`
    (`linear.weight` float32 `[out, in]`, and `linear.bias` if there is one).
    `README.md` has the code for pooling, projection and normalisation;
    `save_sentence_transformers` writes a format that needs none. Readers of
    this format, `DualEncoder.from_preset` among them, take the encoder alone.

    Equal models give equal bytes. One tensor is in memory at a time, beside
    the model.

    Args:
        model: `DualEncoder`, with finite weights.
        directory: folder to write, which appears complete or not at all.
        card: `ModelCard`. Defaults to one without training and evaluation.
        max_shard_bytes: int. Bytes of values of a file of weights; more are
            split. Defaults to `5_000_000_000`.
        overwrite: bool. Replace a folder that holds files. Defaults to
            `False`.

    Raises:
        InvalidInputError: if a weight is not finite, an encoder is no
            `T5Encoder`, the vocabulary's options are not T5's, or the
            projection's activation is not linear, tanh or relu.
        OutputExistsError: if the folder holds files and `overwrite` is false.
    """
    check_shard_bytes(max_shard_bytes)
    check_exportable(model)
    text = (card or ModelCard()).render(model, "hugging_face")
    with atomic_directory(directory, overwrite=overwrite) as temporary:
        (temporary / "README.md").write_text(text, encoding="utf-8")
        if model.query_tower is model.document_tower:
            length = max(p.sequence_length for _, _, p in sides(model))
            _write_tower(
                temporary,
                model.query_tower,
                model.tokenizer,
                length,
                max_shard_bytes,
            )
            return
        for name, tower, preprocessor in sides(model):
            _write_tower(
                temporary / name,
                tower,
                preprocessor.tokenizer,
                preprocessor.sequence_length,
                max_shard_bytes,
            )


def _write_tower(
    directory: pathlib.Path,
    tower: Tower,
    tokenizer: object,
    max_length: int,
    max_shard_bytes: int,
) -> None:
    write_encoder(
        directory,
        tower.encoder,
        tokenizer,
        max_length=max_length,
        max_shard_bytes=max_shard_bytes,
    )
    if tower.projection is not None:
        write_projection(directory / PROJECTION_FILE, tower.projection)
