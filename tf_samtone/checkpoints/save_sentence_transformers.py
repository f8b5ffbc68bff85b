"""Dual encoders as sentence-transformers folders."""

import os
import pathlib
from typing import Any

import keras

from tf_samtone._files import atomic_directory
from tf_samtone.checkpoints._encoder_folder import (
    TORCH_ACTIVATIONS,
    activation_name,
    check_exportable,
    sides,
    write_encoder,
    write_projection,
)
from tf_samtone.checkpoints._json_file import write_json
from tf_samtone.checkpoints.model_card import ModelCard
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.tower import Tower

FORMAT_VERSION = 1

# The modules have moved since; every version reads the old names.
_TYPES = "sentence_transformers.models."
# (kind, folder), in the order in which they run.
_Modules = list[tuple[str, str]]


def save_sentence_transformers(
    model: DualEncoder,
    directory: str | os.PathLike[str],
    *,
    card: ModelCard | None = None,
    overwrite: bool = False,
) -> None:
    """Write a folder that `SentenceTransformer(directory)` loads.

    There, `encode_query` and `encode_document` give the embeddings of
    `encode_queries` and `encode_documents`. One tower is a list of modules
    (Transformer, Pooling, Dense, Normalize), read from version 3 on. Two
    towers are a `Router` of two such lists, which version 5 brought; a
    projection that they share follows the Router.

    One tower has one limit of tokens there, the longer of the two: a query
    longer than `query_length` is cut later than here. `tf_samtone.json` keeps
    both for `DualEncoder.from_preset`, which gives back the same model.

    Equal models give equal bytes. One tensor is in memory at a time, beside
    the model. Weights are float32.

    Args:
        model: `DualEncoder`, with finite weights.
        directory: folder to write, which appears complete or not at all.
        card: `ModelCard`, for `README.md`. Defaults to one without training
            and evaluation.
        overwrite: bool. Replace a folder that holds files. Defaults to
            `False`.

    Raises:
        InvalidInputError: if a weight is not finite, an encoder is no
            `T5Encoder`, the vocabulary's options are not T5's, or the
            projection's activation is not linear, tanh or relu.
        OutputExistsError: if the folder holds files and `overwrite` is false.
    """
    check_exportable(model)
    text = (card or ModelCard()).render(model, "sentence_transformers")
    with atomic_directory(directory, overwrite=overwrite) as temporary:
        (temporary / "README.md").write_text(text, encoding="utf-8")
        if model.query_tower is model.document_tower:
            modules = _write_one_tower(temporary, model)
        else:
            modules = _write_router(temporary, model)
        if model.query_tower.normalize:
            path = f"{len(modules)}_Normalize"
            (temporary / path).mkdir()
            # An empty folder would be lost in git and in uploads.
            write_json(temporary / path / "config.json", {})
            modules.append(("Normalize", path))
        write_json(
            temporary / "modules.json",
            [
                {"idx": i, "name": str(i), "path": path, "type": _TYPES + kind}
                for i, (kind, path) in enumerate(modules)
            ],
        )
        _write_options(temporary, model)


def _write_one_tower(directory: pathlib.Path, model: DualEncoder) -> _Modules:
    length = max(p.sequence_length for _, _, p in sides(model))
    modules = _write_encoder_and_pooling(
        directory, "", model.query_tower, model.tokenizer, length
    )
    projection = model.query_tower.projection
    if projection is not None:
        modules.append(_write_dense(directory, "2_Dense", projection))
    return modules


def _write_router(directory: pathlib.Path, model: DualEncoder) -> _Modules:
    """Write two towers, and the projection that they share, if they do."""
    projection = model.query_tower.projection
    is_shared = projection is model.document_tower.projection
    types: dict[str, str] = {}
    structure: dict[str, list[str]] = {}
    for name, tower, preprocessor in sides(model):
        modules = _write_encoder_and_pooling(
            directory,
            f"{name}_",
            tower,
            preprocessor.tokenizer,
            preprocessor.sequence_length,
        )
        if not is_shared:
            path = f"{name}_2_Dense"
            modules.append(_write_dense(directory, path, tower.projection))
        types |= {path: _TYPES + kind for kind, path in modules}
        structure[name] = [path for _, path in modules]
    write_json(
        directory / "router_config.json",
        {
            "types": types,
            "structure": structure,
            "parameters": {
                "default_route": "document",
                "allow_empty_key": True,
            },
        },
    )
    after: _Modules = []
    if is_shared and projection is not None:
        after.append(_write_dense(directory, "1_Dense", projection))
    return [("Router", ""), *after]


def _write_encoder_and_pooling(
    directory: pathlib.Path,
    prefix: str,
    tower: Tower,
    tokenizer: Any,
    max_length: int,
) -> _Modules:
    # The first module of a list of modules lies in the folder itself.
    first = f"{prefix}0_Transformer" if prefix else ""
    write_encoder(
        directory / first, tower.encoder, tokenizer, max_length=max_length
    )
    write_json(
        directory / first / "sentence_bert_config.json",
        {"max_seq_length": max_length, "do_lower_case": False},
    )
    pooling = f"{prefix}1_Pooling"
    (directory / pooling).mkdir()
    write_json(
        directory / pooling / "config.json",
        {
            "word_embedding_dimension": tower.encoder.hidden_dim,
            "pooling_mode_cls_token": False,
            "pooling_mode_mean_tokens": True,
            "pooling_mode_max_tokens": False,
            "pooling_mode_mean_sqrt_len_tokens": False,
        },
    )
    return [("Transformer", first), ("Pooling", pooling)]


def _write_dense(
    directory: pathlib.Path, path: str, projection: keras.layers.Dense
) -> tuple[str, str]:
    (directory / path).mkdir()
    width, units = projection.kernel.shape
    write_json(
        directory / path / "config.json",
        {
            "in_features": width,
            "out_features": units,
            "bias": projection.use_bias,
            "activation_function": TORCH_ACTIVATIONS[
                activation_name(projection)
            ],
        },
    )
    write_projection(directory / path / "model.safetensors", projection)
    return "Dense", path


def _write_options(directory: pathlib.Path, model: DualEncoder) -> None:
    prefixes = {name: p.prefix for name, _, p in sides(model)}
    lengths = {
        f"{name}_length": p.sequence_length for name, _, p in sides(model)
    }
    write_json(
        directory / "config_sentence_transformers.json",
        {
            "prompts": prefixes if any(prefixes.values()) else {},
            "default_prompt_name": None,
            "similarity_fn_name": (
                "cosine" if model.query_tower.normalize else "dot"
            ),
        },
    )
    write_json(
        directory / "tf_samtone.json",
        {
            "format_version": FORMAT_VERSION,
            "architecture": model.architecture,
            **lengths,
            "fingerprint": model.fingerprint(),
        },
    )
