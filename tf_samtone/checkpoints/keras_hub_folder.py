"""What the JSON files of a KerasHub-style preset of ours say."""

import json
import os
import pathlib
from dataclasses import dataclass
from typing import Any

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.errors import CorruptFileError, MismatchError

INFO_FILE = "tf_samtone.json"
TASK_FILE = "task.json"
FORMAT_VERSION = 1
# In the order of their folders.
SIDES = ("query", "document")
_EMBEDDER = "tf_samtone>T5TextEmbedder"
_TYPES: dict[str, type | tuple[type, ...]] = {
    "projection_dim": int,
    "projection_bias": bool,
    "projection_activation": (str, type(None)),
    "normalize": bool,
    "document_length": (int, type(None)),
    "document_prefix": (str, type(None)),
}


@dataclass(frozen=True, kw_only=True)
class KerasHubTower:
    """One tower of a preset: the folder of a `T5TextEmbedder`.

    Attributes:
        directory: folder with `task.json`.
        sequence_length: int or `None`. Tokens of a text; of a query, if there
            is a document_length.
        prefix: str. Put before every text.
        document_length: int or `None`. Tokens of a document, if it is another
            number.
        document_prefix: str or `None`. Likewise.
        projection_dim: int. 0 for no projection.
        projection_bias: bool.
        projection_activation: str or `None`.
        normalize: bool.
    """

    directory: pathlib.Path
    sequence_length: int | None
    prefix: str | None
    document_length: int | None
    document_prefix: str | None
    projection_dim: int
    projection_bias: bool
    projection_activation: str | None
    normalize: bool

    @classmethod
    def read(cls, directory: pathlib.Path) -> "KerasHubTower":
        """Read `task.json`; nothing in it is imported or called.

        Raises:
            CorruptFileError: if it is missing or malformed.
            MismatchError: if it is that of another task.
        """
        path = directory / TASK_FILE
        task = read_json_object(path)
        if task.get("registered_name") != _EMBEDDER:
            raise MismatchError(
                f"Expected a preset of {_EMBEDDER}. Received: registered_name="
                f"{task.get('registered_name')!r} in {path}. Load it with the "
                "library that wrote it."
            )
        config = _object(path, task, "config")
        texts: dict[str, Any] = {}
        if config.get("preprocessor") is not None:
            preprocessor = _object(path, config, "preprocessor")
            texts = _object(path, preprocessor, "config")
        fields = {name: config.get(name) for name in _TYPES}
        for name, types in _TYPES.items():
            _check_type(path, name, fields[name], types)
        length, prefix = texts.get("sequence_length"), texts.get("prefix")
        _check_type(path, "sequence_length", length, (int, type(None)))
        _check_type(path, "prefix", prefix, (str, type(None)))
        return cls(
            directory=directory,
            sequence_length=length,
            prefix=prefix,
            **fields,
        )

    @property
    def head(self) -> dict[str, Any]:
        """What follows the encoder; equal in both towers of a model."""
        names = ("dim", "bias", "activation")
        fields = [f"projection_{name}" for name in names]
        return {name: getattr(self, name) for name in (*fields, "normalize")}


def is_our_keras_hub_preset(directory: str | os.PathLike[str]) -> bool:
    """Whether `save_keras_hub_preset` or a `T5TextEmbedder` wrote a folder.

    Args:
        directory: any path; it need not exist.

    Returns:
        bool.

    Raises:
        CorruptFileError: if there is a `task.json` that is not JSON.
    """
    folder = pathlib.Path(directory)
    if (folder / INFO_FILE).is_file():
        return True
    task = folder / TASK_FILE
    return (
        task.is_file()
        and read_json_object(task).get("registered_name") == _EMBEDDER
    )


def read_architecture(directory: pathlib.Path) -> str:
    """Return the architecture that `tf_samtone.json` names.

    Args:
        directory: the preset. Without the file it is a single tower.

    Raises:
        CorruptFileError: if the file is malformed.
        MismatchError: if a newer version wrote it.
    """
    path = directory / INFO_FILE
    if not path.is_file():
        return "sde"
    info = read_json_object(path)
    version = info.get("format_version")
    if version != FORMAT_VERSION:
        raise MismatchError(
            f"Expected format_version={FORMAT_VERSION} in {path}. Received: "
            f"format_version={version!r}. Install a newer tf_samtone."
        )
    architecture = info.get("architecture")
    _check_type(path, "architecture", architecture, str)
    return str(architecture)


def write_info(directory: pathlib.Path, **fields: Any) -> None:
    """Write `tf_samtone.json`."""
    info = {"format_version": FORMAT_VERSION, **fields}
    text = json.dumps(info, indent=2, sort_keys=True)
    (directory / INFO_FILE).write_text(text + "\n", encoding="utf-8")


def _object(path: pathlib.Path, owner: dict[str, Any], key: str) -> Any:
    _check_type(path, key, owner.get(key), dict)
    return owner[key]


def _check_type(
    path: pathlib.Path,
    name: str,
    value: Any,
    types: type | tuple[type, ...],
) -> None:
    known = types if isinstance(types, tuple) else (types,)
    # Not isinstance: True is an int.
    if type(value) not in known:
        names = " or ".join(kind.__name__ for kind in known)
        raise CorruptFileError(
            f"Expected `{name}` of type {names} in {path}. Received: "
            f"{name}={value!r}. Get the file again."
        )
