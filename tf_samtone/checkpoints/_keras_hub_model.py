"""What the towers of a KerasHub-style preset of ours make together."""

import pathlib
from typing import Any

from tf_samtone.checkpoints._keras_hub_config import read_keras_hub_config
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.checkpoints.keras_hub_folder import SIDES, KerasHubTower
from tf_samtone.errors import MismatchError
from tf_samtone.text.vocabulary_file import VocabularyFile

__all__ = [
    "check_projection",
    "check_surplus",
    "check_twins",
    "text_options",
    "tower_folders",
]

_PROJECTION = ("layers/dense/vars/0", "layers/dense/vars/1")


def tower_folders(
    folder: pathlib.Path, architecture: str
) -> list[pathlib.Path]:
    """Return the folders of the towers.

    Args:
        folder: the preset.
        architecture: str. What `read_architecture` says.
    """
    if architecture == "sde":
        return [folder]
    return [folder / side for side in SIDES]


def text_options(towers: list[KerasHubTower]) -> dict[str, Any]:
    """Return the lengths and prefixes of queries and documents.

    Args:
        towers: one `KerasHubTower`, or those of queries and documents.

    Returns:
        dict of options of `DualEncoder.from_encoder`.
    """
    query, document = towers[0], towers[-1]
    if query is not document:
        length, prefix = document.sequence_length, document.prefix
    else:
        length, prefix = query.document_length, query.document_prefix
        length = query.sequence_length if length is None else length
        prefix = query.prefix if prefix is None else prefix
    return {
        "query_length": query.sequence_length,
        "query_prefix": query.prefix,
        "document_length": length,
        "document_prefix": prefix,
    }


def check_twins(towers: list[KerasHubTower]) -> None:
    """Refuse two towers that differ in more than their weights.

    Args:
        towers: one `KerasHubTower`, or those of queries and documents.

    Raises:
        CorruptFileError: if a file is missing or malformed.
        InvalidInputError: if there is no vocabulary.
        MismatchError: names what differs.
    """
    facts = []
    for tower in towers:
        encoder = read_keras_hub_config(tower.directory)
        vocabulary = VocabularyFile.read(tower.directory)
        facts.append({**encoder, **tower.head, "vocabulary": vocabulary.proto})
    for name, value in facts[0].items():
        if facts[-1][name] != value:
            raise MismatchError(
                f"Expected the same {name} in {towers[0].directory} and "
                f"{towers[-1].directory}. Received: two. Use folders that were "
                "saved together."
            )


def check_surplus(tower: KerasHubTower) -> None:
    """Refuse weights of a projection that `task.json` does not describe.

    Args:
        tower: `KerasHubTower`.

    Raises:
        CorruptFileError: if the file of weights is missing or malformed.
        MismatchError: names the surplus weights.
    """
    count = 1 + tower.projection_bias if tower.projection_dim else 0
    # Without a projection KerasHub writes no such file.
    if not count and not any(tower.directory.glob("task.weights.*")):
        return
    weights = KerasHubWeights(tower.directory, stem="task")
    expected = _PROJECTION[:count]
    # The state of an optimizer is of no use to a model.
    surplus = sorted(
        name
        for name in weights.shapes
        if name not in expected and not name.startswith("optimizer/")
    )
    if surplus:
        raise MismatchError(
            f"Expected in {weights.path} the weights of the projection that "
            f"task.json describes. Received: surplus={surplus}, with "
            f"projection_dim={tower.projection_dim} and projection_bias="
            f"{tower.projection_bias}. Use the task.json that belongs to the "
            "weights."
        )


def check_projection(
    tower: KerasHubTower, weights: KerasHubWeights, width: int
) -> list[str]:
    """Refuse a projection of other shapes than `task.json` implies.

    Args:
        tower: `KerasHubTower` with a projection.
        weights: `KerasHubWeights` of the task.
        width: int. Of the encoder.

    Returns:
        list of the names of its tensors, the kernel first.

    Raises:
        MismatchError: if a tensor is missing or of another shape.
    """
    shapes: list[tuple[int, ...]] = [(width, tower.projection_dim)]
    if tower.projection_bias:
        shapes.append((tower.projection_dim,))
    expected = dict(zip(_PROJECTION, shapes, strict=False))
    for name, shape in expected.items():
        stored = weights.shapes.get(name)
        if stored != shape:
            raise MismatchError(
                f"Expected {name} of shape {shape}, as task.json implies. "
                f"Received: shape={stored} in {weights.path}. Use the "
                "task.json that belongs to the weights."
            )
    return list(expected)
