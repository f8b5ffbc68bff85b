"""Tensors of pickled files that the user has named."""

import pathlib
import zipfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_samtone.errors import CorruptFileError, MissingDependencyError

_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


class PickledTensors:
    """The tensors of files that `torch.save` wrote.

    torch unpickles tensors and plain containers only (`weights_only`), and
    maps the files into memory; those of torch before 1.6 it has to read whole.

    Args:
        paths: the files.

    Attributes:
        shapes: dict of tensor name to its shape.
        dtypes: dict of tensor name to its type, as safetensors calls it.

    Raises:
        CorruptFileError: if a file holds anything but named tensors, or two
            files hold the same one.
        MissingDependencyError: if torch is not installed.
    """

    def __init__(self, paths: Sequence[pathlib.Path]) -> None:
        self._tensors: dict[str, Any] = {}
        for path in paths:
            values = _load(path)
            twice = sorted(values.keys() & self._tensors.keys())
            if twice:
                raise CorruptFileError(
                    f"Expected each tensor in one of {paths}. Received: "
                    f"{twice[0]} in {path} too. Name the files of one model."
                )
            self._tensors |= values
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
        rows = self._tensors[name][start:stop]
        # A parameter would not go without `detach`.
        return np.asarray(rows.detach().float().numpy())


def _load(path: pathlib.Path) -> dict[str, Any]:
    try:
        import torch
    except ImportError as error:
        raise MissingDependencyError(
            f"Expected torch, to read the pickled {path.name}. Received: none "
            'is installed. Run `pip install "tf-samtone[bench]"`.'
        ) from error
    try:
        values = torch.load(
            path,
            map_location="cpu",
            # Files of torch before 1.6 are no archives, which alone can be
            # mapped.
            mmap=zipfile.is_zipfile(path),
            weights_only=True,
        )
    # What a broken or hostile pickle raises is not documented.
    except Exception as error:
        raise CorruptFileError(
            f"Expected tensors alone in {path}. Received: {error}. Save the "
            "model as safetensors instead."
        ) from error
    if not isinstance(values, dict):
        raise CorruptFileError(
            f"Expected a dict of tensors in {path}. Received: "
            f"{type(values).__name__}. Save the model as safetensors instead."
        )
    for name, value in values.items():
        is_plain = (
            isinstance(name, str)
            and isinstance(value, torch.Tensor)
            and value.layout == torch.strided
            and value.device.type == "cpu"
        )
        if not is_plain:
            raise CorruptFileError(
                f"Expected dense tensors with names in {path}. Received: "
                f"{name!r}, {_kind(value)}. Save the model as safetensors "
                "instead."
            )
    return dict(values)


def _kind(value: Any) -> str:
    parts = [getattr(value, name, "") for name in ("layout", "device")]
    return " ".join([type(value).__name__, *map(str, parts)]).strip()
