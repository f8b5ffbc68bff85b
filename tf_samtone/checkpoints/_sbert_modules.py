"""The modules of a sentence-transformers folder, in either generation."""

import os
import pathlib
from dataclasses import dataclass
from typing import Any

from tf_samtone.checkpoints._json_file import read_json, read_json_object
from tf_samtone.errors import CorruptFileError, MismatchError

MODULES_FILE = "modules.json"
ROUTER_FILE = "router_config.json"
_TRANSFORMER, _POOLING = "Transformer", "Pooling"
_DENSE, _NORMALIZE, _ROUTER = "Dense", "Normalize", "Router"
# Last part of torch's class → Keras's name of the same function.
_ACTIVATIONS = {"Identity": "linear", "Tanh": "tanh", "ReLU": "relu"}
# (kind, folder), in the order in which they run.
Modules = list[tuple[str, pathlib.Path]]


@dataclass(frozen=True, kw_only=True)
class SbertDense:
    """A Dense module.

    Attributes:
        folder: where its weights are.
        in_features: int.
        out_features: int.
        use_bias: bool.
        activation: str. Name of a Keras activation.
    """

    folder: pathlib.Path
    in_features: int
    out_features: int
    use_bias: bool
    activation: str


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


def read_towers(
    directory: str | os.PathLike[str],
) -> tuple[list[SbertTower], bool]:
    """Read the towers of a folder.

    Args:
        directory: folder with `modules.json`.

    Returns:
        `(towers, shares_dense)`: one tower, or those of queries and documents;
        and whether a Dense module follows a Router, so that both share it.

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
        return [_tower(modules, path)], False
    after = modules[1:]
    towers = [
        _tower([*route, *after], path) for route in _routes(modules[0][1])
    ]
    return towers, any(kind == _DENSE for kind, _ in after)


def _routes(folder: pathlib.Path) -> list[Modules]:
    """Return the modules of the routes for queries and for documents."""
    path = folder / ROUTER_FILE
    config = read_json_object(path)
    structure, types = config.get("structure"), config.get("types")
    if not isinstance(structure, dict) or not isinstance(types, dict):
        raise CorruptFileError(
            f"Expected `structure` and `types` in {path}. Received: "
            f"{sorted(config)}. Get the file again."
        )
    if set(structure) != {"query", "document"}:
        raise MismatchError(
            f"Expected routes for 'query' and 'document' in {path}. Received: "
            f"{sorted(structure)}. Other routes cannot be loaded."
        )
    return [
        [_module(folder, types.get(name), name, path) for name in names]
        for names in (structure["query"], structure["document"])
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
    # A path could name any folder of the machine.
    if not folder.resolve().is_relative_to(root.resolve()):
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
    dense = _read_dense(folders[_DENSE]) if _DENSE in folders else None
    return SbertTower(
        folder=folders[_TRANSFORMER],
        dense=dense,
        normalize=_NORMALIZE in folders,
        includes_prompt=_check_pooling(folders[_POOLING]),
    )


def _check_pooling(folder: pathlib.Path) -> bool:
    """Refuse all but the mean; return whether prompts count in it."""
    path = folder / "config.json"
    config = read_json_object(path)
    modes = {
        name.removeprefix("pooling_mode_").removesuffix("_tokens")
        for name, value in config.items()
        if name.startswith("pooling_mode_") and value is True
    }
    mode = config.get("pooling_mode")
    if mode is not None:
        modes |= {mode} if isinstance(mode, str) else set(mode)
    if modes != {"mean"}:
        raise MismatchError(
            f"Expected the mean over tokens in {path}. Received: "
            f"{sorted(modes)}. A model with another pooling cannot be loaded."
        )
    return config.get("include_prompt", True) is not False


def _read_dense(folder: pathlib.Path) -> SbertDense:
    path = folder / "config.json"
    config = read_json_object(path)
    sizes = [config.get("in_features"), config.get("out_features")]
    if any(type(size) is not int or size < 1 for size in sizes):
        raise CorruptFileError(
            "Expected `in_features` and `out_features`, integers > 0, in "
            f"{path}. Received: {sizes}. Get the file again."
        )
    # What the module takes for granted if its config says nothing.
    name = config.get("activation_function", "Tanh")
    activation = _ACTIVATIONS.get(str(name).rsplit(".", 1)[-1])
    if activation is None:
        raise MismatchError(
            f"Expected an activation of {list(_ACTIVATIONS)} in {path}. "
            f"Received: activation_function={name!r}. A model with another "
            "one cannot be loaded."
        )
    return SbertDense(
        folder=folder,
        in_features=config["in_features"],
        out_features=config["out_features"],
        use_bias=config.get("bias", True) is not False,
        activation=activation,
    )
