"""What the towers of a sentence-transformers folder make together."""

import pathlib
from typing import Any

from tf_samtone.checkpoints._hugging_face_config import (
    read_hugging_face_config,
)
from tf_samtone.checkpoints._sbert_modules import SbertTower
from tf_samtone.checkpoints._sbert_settings import SbertDense
from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.errors import MismatchError
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.text.vocabulary_file import VocabularyFile

__all__ = [
    "OWN_FILE",
    "check_alike",
    "check_dense_tensors",
    "own_lengths",
    "read_size",
    "stored_architecture",
]

# What `save_sentence_transformers` knows and the format has no place for.
OWN_FILE = "tf_samtone.json"


def read_size(tower: SbertTower) -> EncoderSize:
    """Read the sizes of a tower's encoder.

    Args:
        tower: `SbertTower`.

    Returns:
        `EncoderSize`.

    Raises:
        CorruptFileError: if its config is missing or malformed.
        MismatchError: if its Dense module is of another width.
    """
    size = EncoderSize.of_arguments(read_hugging_face_config(tower.folder))
    # The pooling's own width is wrong in published folders; this one is not.
    if tower.dense and tower.dense.in_features != size.hidden_dim:
        raise MismatchError(
            f"Expected in_features={size.hidden_dim}, the encoder's width, in "
            f"{tower.dense.folder}. Received: "
            f"in_features={tower.dense.in_features}. Use the Dense module "
            "that belongs to the encoder."
        )
    return size


def own_lengths(own: dict[str, Any]) -> dict[str, Any]:
    """Return the lengths of both sides, of which the format has but one.

    Args:
        own: what `tf_samtone.json` says.
    """
    names = ("query_length", "document_length")
    return {name: own[name] for name in names if name in own}


def stored_architecture(
    towers: list[SbertTower], own: dict[str, Any]
) -> str | None:
    """Return the architecture of two towers, `None` for one tower.

    Args:
        towers: the towers of a folder.
        own: what `tf_samtone.json` says.
    """
    if len(towers) == 1:
        return None
    # One folder that both have is behind the Router.
    shares_dense = towers[0].dense and towers[0].dense == towers[1].dense
    return own.get("architecture", "ade-spl" if shares_dense else "ade")


def check_alike(
    root: pathlib.Path, towers: list[SbertTower], sizes: list[EncoderSize]
) -> None:
    """Refuse two towers that differ in more than their weights.

    Args:
        root: folder with `modules.json`.
        towers: its two towers.
        sizes: those of their encoders.

    Raises:
        MismatchError: names what differs.
    """
    denses = [
        (t.dense.out_features, t.dense.use_bias, t.dense.activation)
        if t.dense
        else None
        for t in towers
    ]
    protos = [VocabularyFile.read(tower.folder).proto for tower in towers]
    is_alike = {
        "sizes": sizes[0] == sizes[1],
        "Dense modules": denses[0] == denses[1],
        "normalisation": towers[0].normalize == towers[1].normalize,
        "vocabulary": protos[0] == protos[1],
    }
    different = [name for name, alike in is_alike.items() if not alike]
    if different:
        raise MismatchError(
            f"Expected two towers in {root} that differ in weights only. "
            f"Received: other {', '.join(different)}. Such a model cannot be "
            "loaded."
        )


def check_dense_tensors(dense: SbertDense, folder: TensorFolder) -> list[str]:
    """Refuse weights that the config of a Dense module does not describe.

    Args:
        dense: `SbertDense`.
        folder: `TensorFolder` of the module.

    Returns:
        list of the names of its tensors, the kernel first.

    Raises:
        MismatchError: if names or shapes are others.
    """
    expected: dict[str, tuple[int, ...]] = {
        "linear.weight": (dense.out_features, dense.in_features)
    }
    if dense.use_bias:
        expected["linear.bias"] = (dense.out_features,)
    if folder.shapes != expected:
        raise MismatchError(
            f"Expected in {dense.folder} tensors of the shapes {expected}. "
            f"Received: {folder.shapes}. Use the config that belongs to the "
            "weights."
        )
    return list(expected)
