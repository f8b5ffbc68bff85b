"""Tensors of pickled files that the user has named."""

import pathlib
from collections.abc import Sequence

import numpy as np

from tf_samtone.errors import CorruptFileError, MissingDependencyError

_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


class PickledTensors:
    """The tensors of files that `torch.save` wrote.

    torch unpickles tensors and plain containers only (`weights_only`), and
    maps the files into memory.

    Args:
        paths: the files.

    Attributes:
        shapes: dict of tensor name to its shape.
        dtypes: dict of tensor name to its type, as safetensors calls it.

    Raises:
        CorruptFileError: if a file holds anything but named tensors.
        MissingDependencyError: if torch is not installed.
    """

    def __init__(self, paths: Sequence[pathlib.Path]) -> None:
        self._tensors = {}
        for path in paths:
            self._tensors.update(_load(path))
        self.shapes = {
            name: tuple(tensor.shape) for name, tensor in self._tensors.items()
        }
        types = {
            name: str(tensor.dtype).removeprefix("torch.")
            for name, tensor in self._tensors.items()
        }
        self.dtypes = {name: _TYPES.get(t, t) for name, t in types.items()}

    def read_rows(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a part of one tensor as float32.

        Args:
            name: a key of `shapes`.
            start: int. First index of the first axis.
            stop: int. The index after the last.

        Returns:
            float32 array.
        """
        return np.asarray(self._tensors[name][start:stop].float().numpy())


def _load(path: pathlib.Path) -> dict:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            f"Expected torch, to read the pickled {path.name}. Received: none "
            'is installed. Run `pip install "tf-samtone[bench]"`.'
        ) from error
    try:
        values = torch.load(
            path, map_location="cpu", mmap=True, weights_only=True
        )
    # What a broken or hostile pickle raises is not documented.
    except Exception as error:
        raise CorruptFileError(
            f"Expected tensors alone in {path}. Received: {error}. Save the "
            "model as safetensors instead."
        ) from error
    if not isinstance(values, dict) or not all(
        isinstance(value, torch.Tensor) for value in values.values()
    ):
        raise CorruptFileError(
            f"Expected a dict of tensors in {path}. Received: "
            f"{type(values).__name__}. Save the model as safetensors instead."
        )
    return values
