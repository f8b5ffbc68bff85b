"""Dual encoders as KerasHub presets."""

import os
import pathlib
from typing import Any

import keras
import keras_hub

from tf_samtone._files import atomic_directory
from tf_samtone.checkpoints.keras_hub_folder import SIDES, write_info
from tf_samtone.checkpoints.model_card import ModelCard
from tf_samtone.errors import InvalidInputError
from tf_samtone.models.check_finite import check_finite
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.t5_text_embedder import T5TextEmbedder
from tf_samtone.models.t5_text_embedder_preprocessor import (
    T5TextEmbedderPreprocessor,
)

_CARD = "README.md"


def save_keras_hub_preset(
    model: DualEncoder,
    directory: str | os.PathLike[str],
    *,
    card: ModelCard | None = None,
    overwrite: bool = False,
) -> None:
    """Write a dual encoder as a KerasHub preset, atomically.

    With one tower the folder is a preset: after an import of
    `tf_samtone.models.T5TextEmbedder`, `from_preset` of
    `keras_hub.models.TextEmbedder`, `Backbone`, `Tokenizer` and
    `TextEmbedderPreprocessor` load it. Its preprocessor is that of queries;
    length and prefix of documents stand in `task.json`, and
    `encode_documents` uses them.

    Two towers become two presets, in the folders `query` and `document`. What
    they share is in both, and shared again by `DualEncoder.from_preset`, which
    reads either kind bit by bit; `tf_samtone.json` tells it the architecture.

    Equal models give equal files but for `metadata.json`, where KerasHub
    writes the date, and layer names in the weights' attributes.

    Args:
        model: `DualEncoder`.
        directory: str or path.
        card: `ModelCard`, for `README.md`. Defaults to one without training
            and evaluation.
        overwrite: bool. Replaces a folder that is not empty. Defaults to
            `False`.

    Raises:
        InvalidInputError: if a weight is not finite, or the towers differ in
            more than their weights.
        OutputExistsError: if the folder is not empty.
    """
    check_finite(model)
    _check_towers(model)
    text = card.render(model, "keras_hub") if card else None
    with atomic_directory(directory, overwrite=overwrite) as temporary:
        if model.query_tower is model.document_tower:
            document = model.document_preprocessor
            _save_tower(
                temporary,
                model.query_tower,
                model.query_preprocessor,
                document_length=document.sequence_length,
                document_prefix=document.prefix,
            )
        else:
            for side in SIDES:
                _save_tower(
                    temporary / side,
                    getattr(model, f"{side}_tower"),
                    getattr(model, f"{side}_preprocessor"),
                )
        write_info(
            temporary,
            architecture=model.architecture,
            query_length=model.query_preprocessor.sequence_length,
            document_length=model.document_preprocessor.sequence_length,
            fingerprint=model.fingerprint(),
        )
        if text is not None:
            (temporary / _CARD).write_text(text, encoding="utf-8")


def _save_tower(
    directory: pathlib.Path,
    tower: Any,
    texts: Any,
    **document_options: Any,
) -> None:
    # Names given here: Keras would count up those of this process.
    tokenizer = keras_hub.models.T5Tokenizer(
        proto=texts.tokenizer.proto, name="t5_tokenizer"
    )
    embedder = T5TextEmbedder(
        tower.encoder,
        T5TextEmbedderPreprocessor(
            tokenizer,
            sequence_length=texts.sequence_length,
            prefix=texts.prefix,
            name="preprocessor",
        ),
        normalize=tower.normalize,
        name="t5_text_embedder",
        **_projection_options(tower.projection),
        **document_options,
    )
    if tower.projection is not None and embedder.projection is not None:
        embedder.projection.set_weights(tower.projection.get_weights())
    embedder.save_to_preset(str(directory))


def _projection_options(
    projection: keras.layers.Dense | None,
) -> dict[str, Any]:
    if projection is None:
        return {"projection_dim": 0}
    activation = keras.activations.serialize(projection.activation)
    return {
        "projection_dim": projection.units,
        "projection_bias": projection.use_bias,
        "projection_activation": None if activation == "linear" else activation,
    }


def _check_towers(model: DualEncoder) -> None:
    towers = (model.query_tower, model.document_tower)
    facts = [
        {
            **_projection_options(tower.projection),
            **_encoder_options(tower.encoder),
            "normalize": tower.normalize,
        }
        for tower in towers
    ]
    for name, value in facts[0].items():
        if facts[1][name] != value:
            raise InvalidInputError(
                "Expected two towers that differ in their weights only. "
                f"Received: {name}={value!r} and {name}={facts[1][name]!r}. "
                "Save each tower on its own."
            )
    activation = facts[0].get("projection_activation")
    if not isinstance(activation, str | None):
        raise InvalidInputError(
            "Expected a projection with an activation that Keras has a name "
            f"for. Received: {activation!r}. Use one of keras.activations."
        )


def _encoder_options(encoder: Any) -> dict[str, Any]:
    config = encoder.get_config()
    return {k: v for k, v in config.items() if k not in ("name", "trainable")}
