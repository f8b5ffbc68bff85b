"""Tensors of Keras's weight files, read a few rows at a time."""

import os
import pathlib
from collections.abc import Iterator

import h5py
import numpy as np

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.errors import CorruptFileError, InvalidInputError

# What h5py raises about damaged files, beside its own OSError.
_BROKEN = (OSError, KeyError, RuntimeError, TypeError, ValueError)


class KerasHubWeights:
    """The weights of a KerasHub preset, in one HDF5 file or in shards.

    Only the names and shapes are read at first. Nothing outside the folder is
    ever opened: links, virtual and external datasets, and shards with a path
    in their name, which could all lead to any file, are left out or refused.

    Args:
        directory: folder with `model.weights.h5`, or with
            `model.weights.json` and the shards that it names.
        stem: str. First part of these names. Defaults to `"model"`.

    Attributes:
        path: the weights file, or the index of the shards.
        files: list of the files that hold the tensors.
        shapes: dict of the path of a tensor inside the file, such as
            `"layers/dense/vars/0"`, to its shape.
        dtypes: dict of that path to `"float32"`, `"bfloat16"` or another
            type of NumPy.

    Raises:
        CorruptFileError: if a file is missing, truncated or not HDF5, or if
            the index is malformed.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, stem: str = "model"
    ) -> None:
        folder = pathlib.Path(directory)
        self.path = folder / f"{stem}.weights.h5"
        self.files = [self.path]
        if not self.path.is_file():
            self.path = folder / f"{stem}.weights.json"
            self.files = _shards(folder, self.path)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._files: dict[str, pathlib.Path] = {}
        self.dtypes: dict[str, str] = {}
        for file in self.files:
            self._read_header(file)

    def _read_header(self, path: pathlib.Path) -> None:
        for name, shape, kind in _header(path):
            if name in self._files:
                raise CorruptFileError(
                    f"Expected {name} in one shard. Received: it in "
                    f"{self._files[name].name} and in {path.name} of "
                    f"{path.parent}. Get the folder again."
                )
            self._files[name] = path
            self.shapes[name] = shape
            self.dtypes[name] = kind

    def check_float(self, name: str) -> None:
        """Raise `InvalidInputError` unless a tensor is of a float type."""
        kind = self.dtypes[name]
        if kind not in ("bfloat16", "float16", "float32", "float64"):
            raise InvalidInputError(
                f"Expected a float tensor. Received: {name} of type {kind} in "
                f"{self._files[name]}. Save the weights as float32; quantised "
                "weights cannot be read."
            )

    def read_rows(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a part of one tensor as float32.

        Args:
            name: a key of `shapes`.
            start: int. First index of the first axis.
            stop: int. The index after the last.

        Returns:
            float32 array.

        Raises:
            CorruptFileError: if it cannot be read, or holds NaN or infinity.
            InvalidInputError: if it is not of a float type.
        """
        path = self._files[name]
        self.check_float(name)
        try:
            with _opened(path) as file:
                rows = file[name][start:stop]
        except _BROKEN as error:
            raise CorruptFileError(
                f"Expected {name} in {path}. Received: {error!r}. Get the "
                "file again."
            ) from error
        if self.dtypes[name] == "bfloat16":
            # The upper half of a float32, which HDF5 holds as opaque bytes.
            rows = (rows.view("<u2").astype("<u4") << 16).view("<f4")
        rows = np.asarray(rows, np.float32)
        if not np.isfinite(rows).all():
            raise CorruptFileError(
                f"Expected finite weights in {path}. Received: NaN or "
                f"infinity in {name}. Use another checkpoint."
            )
        return rows


def _shards(folder: pathlib.Path, index: pathlib.Path) -> list[pathlib.Path]:
    """Return the files that an index names."""
    if not index.is_file():
        raise CorruptFileError(
            f"Expected {index.with_suffix('.h5').name} or {index.name} in "
            f"{folder}. Received: neither. Get the weights file."
        )
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CorruptFileError(
            f"Expected a `weight_map` of tensors in {index}. Received: "
            f"weight_map={weight_map!r}. Get the file again."
        )
    names = set()
    for value in weight_map.values():
        # Several, if the variables of one layer straddle two shards.
        for name in value if isinstance(value, list) else [value]:
            # A path in the index could name any file of the machine.
            plain = (
                isinstance(name, str) and name == pathlib.PurePath(name).name
            )
            if not plain or not name.endswith(".h5"):
                raise CorruptFileError(
                    f"Expected plain names of .h5 files in {index}. Received: "
                    f"{name!r}. Do not use this folder unless you know who "
                    "made it."
                )
            names.add(name)
    return [folder / name for name in sorted(names)]


def _opened(path: pathlib.Path) -> h5py.File:
    try:
        return h5py.File(path, "r")
    except OSError as error:
        raise CorruptFileError(
            f"Expected an HDF5 file at {path}. Received: {error}. Get the "
            "file again."
        ) from error


def _header(path: pathlib.Path) -> list[tuple[str, tuple[int, ...], str]]:
    """Return name, shape and type of everything in a file."""
    with _opened(path) as file:
        try:
            return [
                (name, tuple(dataset.shape), _type_of(dataset))
                for name, dataset in _datasets(file)
            ]
        except CorruptFileError:
            raise
        except _BROKEN as error:
            raise CorruptFileError(
                f"Expected a readable HDF5 file at {path}. Received: "
                f"{error!r}. Get the file again."
            ) from error


def _datasets(file: h5py.File) -> Iterator[tuple[str, h5py.Dataset]]:
    """Yield what the file itself holds; `visit` follows no soft links."""
    names: list[str] = []
    file.visit(names.append)
    for name in names:
        item = file[name]
        if not isinstance(item, h5py.Dataset):
            continue
        if item.is_virtual or item.external:
            raise CorruptFileError(
                f"Expected the values of {name} in {file.filename}. Received: "
                "a reference to another file. Do not use this file unless you "
                "know who made it."
            )
        yield name, item


def _type_of(dataset: h5py.Dataset) -> str:
    # Keras's own mark, since HDF5 knows no bfloat16.
    is_bfloat16 = dataset.attrs.get("dtype") == "bfloat16"
    if is_bfloat16 and dataset.dtype.itemsize == 2:
        return "bfloat16"
    return str(dataset.dtype)
