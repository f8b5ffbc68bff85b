"""The modules of a sentence-transformers folder, in either generation."""

import os
import pathlib
from dataclasses import dataclass
from typing import Any

from tf_samtone.checkpoints._json_file import read_json, read_json_object
from tf_samtone.checkpoints._sbert_settings import (
    SbertDense,
    check_normalize,
    check_pooling,
    read_dense,
)
from tf_samtone.errors import CorruptFileError, MismatchError

__all__ = ["SbertTower", "is_sentence_transformers_folder", "read_towers"]

MODULES_FILE = "modules.json"
ROUTER_FILE = "router_config.json"
_TRANSFORMER, _POOLING = "Transformer", "Pooling"
_DENSE, _NORMALIZE, _ROUTER = "Dense", "Normalize", "Router"
# (kind, folder), in the order in which they run.
Modules = list[tuple[str, pathlib.Path]]


@dataclass(frozen=True, kw_only=True)
class SbertTower:
    """The modules that one text runs through.

    Attributes:
        folder: of the Transformer module, a Hugging Face folder.
        dense: `SbertDense` or `None`.
        normalize: bool.
        includes_prompt: bool. Whether a prompt counts in the pooling.
    """

    folder: pathlib.Path
    dense: SbertDense | None
    normalize: bool
    includes_prompt: bool = True


def is_sentence_transformers_folder(directory: str | os.PathLike[str]) -> bool:
    """Whether a folder has the `modules.json` of sentence-transformers.

    Args:
        directory: any path; it need not exist.

    Returns:
        bool.
    """
    return pathlib.Path(directory, MODULES_FILE).is_file()


def read_towers(directory: str | os.PathLike[str]) -> list[SbertTower]:
    """Read the towers of a folder.

    Args:
        directory: folder with `modules.json`.

    Returns:
        list of one tower, or of those of queries and documents if a Router
        sends them different ways. What both share has one folder in both.

    Raises:
        CorruptFileError: if a file is malformed, or a path leaves the folder.
        MismatchError: if there are modules that `Tower` is not made of.
    """
    root = pathlib.Path(directory)
    path = root / MODULES_FILE
    entries = read_json(path)
    if not isinstance(entries, list) or not all(
        isinstance(e, dict) and {"path", "type"} <= e.keys() for e in entries
    ):
        raise CorruptFileError(
            f"Expected a list of modules with `path` and `type` in {path}. "
            f"Received: {entries!r}. Get the file again."
        )
    modules = [_module(root, e["type"], e["path"], path) for e in entries]
    if not modules or modules[0][0] != _ROUTER:
        return [_tower(modules, path)]
    query, document = [
        _tower([*route, *modules[1:]], path) for route in _routes(modules[0][1])
    ]
    return [query] if query == document else [query, document]


def _routes(folder: pathlib.Path) -> list[Modules]:
    """Return the modules of the routes for queries and for documents."""
    path = folder / ROUTER_FILE
    config = read_json_object(path)
    structure, types = config.get("structure"), config.get("types")
    if (
        not isinstance(structure, dict)
        or not isinstance(types, dict)
        or not all(isinstance(names, list) for names in structure.values())
    ):
        raise CorruptFileError(
            f"Expected `structure`, routes to lists, and `types` in {path}. "
            f"Received: structure={structure!r}, types={types!r}. Get the file "
            "again."
        )
    parameters = config.get("parameters") or {}
    mappings = isinstance(parameters, dict) and parameters.get("route_mappings")
    if set(structure) != {"query", "document"} or mappings:
        raise MismatchError(
            f"Expected routes for 'query' and 'document' in {path}. Received: "
            f"{sorted(structure)}, route_mappings={mappings or None!r}. Other "
            "routes cannot be loaded."
        )
    return [
        [_module(folder, types.get(str(n)), n, path) for n in structure[route]]
        for route in ("query", "document")
    ]


def _module(
    root: pathlib.Path, kind: Any, name: Any, source: pathlib.Path
) -> tuple[str, pathlib.Path]:
    """Return the kind of a module, and its folder, which lies below `root`."""
    if not isinstance(kind, str) or not isinstance(name, str):
        raise CorruptFileError(
            f"Expected names of modules and folders in {source}. Received: "
            f"type={kind!r}, path={name!r}. Get the file again."
        )
    folder = root / name
    # A path, or a link, could name any folder of the machine.
    if "\0" in name or not folder.resolve().is_relative_to(root.resolve()):
        raise CorruptFileError(
            f"Expected paths below {root} in {source}. Received: "
            f"path={name!r}. Do not use this folder unless you know who made "
            "it."
        )
    # The modules moved between versions; the last part stayed.
    return kind.rsplit(".", 1)[-1], folder


def _tower(modules: Modules, source: pathlib.Path) -> SbertTower:
    kinds = [kind for kind, _ in modules]
    rest = kinds[2:]
    if kinds[:2] != [_TRANSFORMER, _POOLING] or rest not in (
        [],
        [_DENSE],
        [_NORMALIZE],
        [_DENSE, _NORMALIZE],
    ):
        raise MismatchError(
            "Expected the modules Transformer, Pooling, at most one Dense, at "
            f"most one Normalize in {source}. Received: {kinds}. A model with "
            "other modules cannot be loaded."
        )
    folders = dict(modules)
    if _NORMALIZE in folders:
        check_normalize(folders[_NORMALIZE])
    return SbertTower(
        folder=folders[_TRANSFORMER],
        dense=read_dense(folders[_DENSE]) if _DENSE in folders else None,
        normalize=_NORMALIZE in folders,
        includes_prompt=check_pooling(folders[_POOLING]),
    )
