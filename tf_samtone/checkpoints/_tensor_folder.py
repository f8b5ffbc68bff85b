"""Tensors of a Hugging Face folder, read one at a time."""

import json
import os
import pathlib
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from tf_samtone.errors import CorruptFileError, InvalidInputError

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_DTYPES = ("F32", "F16", "BF16")


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the object in a JSON file.

    Args:
        path: the file.

    Returns:
        The decoded object.

    Raises:
        CorruptFileError: if the file is not UTF-8 JSON with an object.
    """
    try:
        value = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise CorruptFileError(
            f"Expected JSON in {path}. Received: {error}. Get the file again."
        ) from error
    if not isinstance(value, dict):
        raise CorruptFileError(
            f"Expected a JSON object in {path}. Received: "
            f"{type(value).__name__}. Get the file again."
        )
    return value


class TensorFolder:
    """The safetensors files of a folder, single or in shards.

    Only the headers are read at first; `read` then reads one tensor. Pickled
    weights are refused, since loading a pickle runs whatever code is in it.

    Args:
        directory: folder with `model.safetensors`, or with
            `model.safetensors.index.json` and the shards that it names.

    Attributes:
        shapes: dict of tensor name to its shape.

    Raises:
        CorruptFileError: if a file is missing, truncated or not safetensors,
            or if the index does not fit its shards.
        InvalidInputError: if the folder holds pickled weights only.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = pathlib.Path(directory)
        self._files = self._locate()
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._dtypes: dict[str, str] = {}
        for file_name in sorted(set(self._files.values())):
            self._read_header(file_name)
        absent = sorted(set(self._files) - set(self.shapes) - {""})
        if absent:
            raise CorruptFileError(
                f"Expected the tensors that {INDEX_FILE} names. Received: "
                f"{self._directory} without {absent}. Get the folder again."
            )

    def _locate(self) -> dict[str, str]:
        """Return tensor name -> file name; one unnamed entry for one file."""
        if (self._directory / SINGLE_FILE).is_file():
            return {"": SINGLE_FILE}
        index = self._directory / INDEX_FILE
        if index.is_file():
            return self._read_index(index)
        pickles = sorted(
            path.name
            for pattern in _PICKLES
            for path in self._directory.glob(pattern)
        )
        if pickles:
            raise InvalidInputError(
                f"Expected {SINGLE_FILE} in {self._directory}. Received: "
                f"pickled weights {pickles}. Loading a pickle runs the code "
                "in it, so it is refused; save the model with "
                "`model.save_pretrained(folder)` of transformers instead."
            )
        raise CorruptFileError(
            f"Expected {SINGLE_FILE} or {INDEX_FILE} in {self._directory}. "
            "Received: neither. Get the weights file."
        )

    def _read_index(self, index: pathlib.Path) -> dict[str, str]:
        weight_map = read_json_object(index).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise CorruptFileError(
                f"Expected a `weight_map` of tensors in {index}. Received: "
                f"weight_map={weight_map!r}. Get the file again."
            )
        for file_name in weight_map.values():
            # A path in the index could name any file of the machine.
            plain = isinstance(file_name, str) and file_name == (
                pathlib.PurePath(file_name).name
            )
            if not plain or not file_name.endswith(".safetensors"):
                raise CorruptFileError(
                    f"Expected plain names of .safetensors files in {index}. "
                    f"Received: {file_name!r}. Do not use this folder unless "
                    "you know who made it."
                )
        return weight_map

    def _read_header(self, file_name: str) -> None:
        with self._open(file_name) as file:
            for name in file.keys():  # noqa: SIM118 (not a dict)
                if self._files.get(name, file_name) != file_name:
                    raise CorruptFileError(
                        f"Expected {name} in {self._files[name]}. Received: "
                        f"it in {file_name} too. Get the folder again."
                    )
                self._files[name] = file_name
                view = file.get_slice(name)
                self.shapes[name] = tuple(view.get_shape())
                self._dtypes[name] = view.get_dtype()

    def _open(self, file_name: str) -> safe_open:
        path = self._directory / file_name
        try:
            return safe_open(path, framework="numpy")
        except (OSError, SafetensorError) as error:
            raise CorruptFileError(
                f"Expected a safetensors file at {path}. Received: {error}. "
                "Get the file again."
            ) from error

    def read(self, name: str) -> np.ndarray:
        """Return one tensor as float32, whatever float type it is stored in.

        Args:
            name: a key of `shapes`.

        Returns:
            float32 array of the stored shape.

        Raises:
            CorruptFileError: if the tensor holds NaN or infinity.
            InvalidInputError: if it is not of a float type.
        """
        if self._dtypes[name] not in _DTYPES:
            raise InvalidInputError(
                f"Expected a float tensor, one of {_DTYPES}. Received: "
                f"{name} of type {self._dtypes[name]}. Save the weights as "
                "float32; quantised weights cannot be read."
            )
        with self._open(self._files[name]) as file:
            tensor = np.asarray(file.get_tensor(name), np.float32)
        if not np.isfinite(tensor).all():
            raise CorruptFileError(
                f"Expected finite weights in {self._directory}. Received: "
                f"NaN or infinity in {name}. Use another checkpoint."
            )
        return tensor
