"""Tensors of a Hugging Face folder, read one at a time."""

import os
import pathlib
from collections.abc import Sequence

import numpy as np
from safetensors import SafetensorError, safe_open

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._pickled_tensors import PickledTensors
from tf_samtone.errors import CorruptFileError, InvalidInputError

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
_DTYPES = ("F32", "F16", "BF16")


class TensorFolder:
    """The safetensors files of a folder, single or in shards.

    Only the headers are read at first; `read` then reads one tensor. Pickled
    weights are refused unless named, since loading a pickle can run whatever
    code is in it.

    Args:
        directory: folder with `model.safetensors`, or with
            `model.safetensors.index.json` and the shards that it names.
        stem: str. First part of these names. Defaults to `"model"`.
        pickled_files: names of pickled files of the folder that may be read
            if there are no others. Defaults to none.

    Attributes:
        shapes: dict of tensor name to its shape.
        dtypes: dict of tensor name to `"F32"`, `"F16"`, `"BF16"` or another
            type of safetensors.

    Raises:
        CorruptFileError: if a file is missing, truncated or not safetensors,
            or if the index does not fit its shards.
        InvalidInputError: if the folder holds pickled weights only.
        MissingDependencyError: if pickled weights are to be read without
            torch.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        stem: str = "model",
        pickled_files: Sequence[str] = (),
    ) -> None:
        self._directory = pathlib.Path(directory)
        self._single_file = f"{stem}.safetensors"
        self._index_file = f"{stem}.safetensors.index.json"
        self._pickled: PickledTensors | None = None
        self._files = self._locate(pickled_files)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        if self._pickled is not None:
            self.shapes = self._pickled.shapes
            self.dtypes = self._pickled.dtypes
            return
        for file_name in sorted(set(self._files.values())):
            self._read_header(file_name)
        absent = sorted(set(self._files) - set(self.shapes) - {""})
        if absent:
            raise CorruptFileError(
                f"Expected the tensors that {self._index_file} names. Received:"
                f" {self._directory} without {absent}. Get the folder again."
            )

    def _locate(self, pickled_files: Sequence[str]) -> dict[str, str]:
        """Return tensor name -> file name; one unnamed entry for one file."""
        if (self._directory / self._single_file).is_file():
            return {"": self._single_file}
        index = self._directory / self._index_file
        if index.is_file():
            return self._read_index(index)
        pickles = sorted(
            path.name
            for pattern in _PICKLES
            for path in self._directory.glob(pattern)
        )
        named = [name for name in pickles if name in pickled_files]
        if named:
            self._pickled = PickledTensors(
                [self._directory / name for name in named]
            )
            return {}
        if pickles:
            raise InvalidInputError(
                f"Expected {self._single_file} in {self._directory}. Received: "
                f"pickled weights {pickles}. Loading a pickle can run the code "
                "in it, so it is refused. Save the model as safetensors with "
                "`model.save_pretrained(folder)` of transformers, or name the "
                "files in `pickled_files` if you trust who made them."
            )
        raise CorruptFileError(
            f"Expected {self._single_file} or {self._index_file} in "
            f"{self._directory}. Received: neither. Get the weights file."
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
                self.dtypes[name] = view.get_dtype()

    def _open(self, file_name: str) -> safe_open:
        path = self._directory / file_name
        try:
            return safe_open(path, framework="numpy")
        except (OSError, SafetensorError) as error:
            raise CorruptFileError(
                f"Expected a safetensors file at {path}. Received: {error}. "
                "Get the file again."
            ) from error

    @property
    def files(self) -> list[pathlib.Path]:
        """The files of weights, in order; none if they are pickled."""
        names = sorted(set(self._files.values()))
        return [self._directory / name for name in names]

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
        return self.read_rows(name, 0, self.shapes[name][0])

    def check_float(self, name: str) -> None:
        """Raise `InvalidInputError` unless a tensor is of a float type."""
        if self.dtypes[name] not in _DTYPES:
            raise InvalidInputError(
                f"Expected a float tensor, one of {_DTYPES}. Received: "
                f"{name} of type {self.dtypes[name]}. Save the weights as "
                "float32; quantised weights cannot be read."
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
            CorruptFileError: if it holds NaN or infinity.
            InvalidInputError: if it is not of a float type.
        """
        self.check_float(name)
        rows = np.asarray(self._stored_rows(name, start, stop), np.float32)
        if not np.isfinite(rows).all():
            raise CorruptFileError(
                f"Expected finite weights in {self._directory}. Received: "
                f"NaN or infinity in {name}. Use another checkpoint."
            )
        return rows

    def _stored_rows(self, name: str, start: int, stop: int) -> np.ndarray:
        if self._pickled is not None:
            return self._pickled.read_rows(name, start, stop)
        # Opened anew each time: an open file keeps the pages that were read.
        with self._open(self._files[name]) as file:
            return np.asarray(file.get_slice(name)[start:stop])
