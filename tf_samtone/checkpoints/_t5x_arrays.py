"""Arrays of a t5x checkpoint, read one at a time."""

import math
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from tf_samtone.checkpoints._t5x_inline_array import (
    CHUNKED,
    InlineArray,
    inline_array,
)
from tf_samtone.checkpoints._t5x_tree import Extent, read_t5x_tree
from tf_samtone.checkpoints._zarr_array import ZarrArray, zarr_array
from tf_samtone.errors import CorruptFileError, InvalidInputError

__all__ = ["T5xArrays", "is_t5x_checkpoint"]

TREE_FILE = "checkpoint"
DECODER_PREFIX = "decoder."
_DTYPES = ("float32", "float16", "bfloat16")
_ORBAX_FILES = ("manifest.ocdbt", "_METADATA", "_CHECKPOINT_METADATA")
_ORBAX_LEAF = "PLACEHOLDER://"
_TOP_KEYS = (b"version", b"optimizer", b"target", b"state", b"flax_mutables")


def is_t5x_checkpoint(directory: str | os.PathLike[str]) -> bool:
    """Whether a folder has the msgpack file of a t5x checkpoint.

    TensorFlow's checkpoints have a text file of the same name.

    Args:
        directory: any path; it need not exist.

    Returns:
        bool.
    """
    path = pathlib.Path(directory, TREE_FILE)
    if not path.is_file():
        return False
    with path.open("rb") as file:
        head = file.read(16)
    # A short map, whose first key is a short string.
    is_map = len(head) > 1 and 0x80 < head[0] < 0x90
    is_key = any(
        head[1:].startswith(bytes([0xA0 | len(key)]) + key) for key in _TOP_KEYS
    )
    return is_map and is_key


class T5xArrays:
    """The weights of a t5x checkpoint, in zarr arrays and in msgpack.

    Only the structure is read at first; `read` then reads one array, and
    `read_rows` the chunks that hold some rows. The optimizer's state is never
    read. Arrays are looked for in the checkpoint's folder only, whatever
    storage the checkpoint was written to.

    Args:
        directory: folder `checkpoint_<step>` with the file `checkpoint` and a
            folder per array, e.g. `target.encoder.encoder_norm.scale`.

    Attributes:
        shapes: dict of dotted name below the model, e.g.
            `encoder.layers_0.mlp.wo.kernel`, to shape. Without the decoder.
        dtypes: dict of name to `"float32"`, `"float16"` or `"bfloat16"`.
        decoder_names: list of the names of a decoder's weights, which need
            not be there.
        step: int or `None`. Training step.

    Raises:
        CorruptFileError: if a file is missing or malformed, if an array lies
            outside the folder, or if the layout is orbax's.
        InvalidInputError: if a weight is not of a float type.
        MissingDependencyError: if msgpack or tensorstore is not installed.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = pathlib.Path(directory)
        path = self._directory / TREE_FILE
        if not path.is_file():
            raise CorruptFileError(self._no_tree_message())
        tree = read_t5x_tree(path)
        self._arrays: dict[str, InlineArray | ZarrArray] = {}
        self._last: InlineArray | ZarrArray | None = None
        self.decoder_names: list[str] = []
        for name, leaf in _leaves(tree.target):
            if name.startswith(DECODER_PREFIX):
                self.decoder_names.append(name)
            else:
                self._arrays[name] = self._array(name, leaf, tree.version)
        self.shapes = {n: a.shape for n, a in self._arrays.items()}
        self.dtypes = {n: a.dtype for n, a in self._arrays.items()}
        self.step = self._step(tree.step)

    def read(self, name: str) -> np.ndarray:
        """Return one array as float32, whatever type it is stored in.

        Args:
            name: a key of `shapes`.

        Returns:
            float32 array of the stored shape.

        Raises:
            CorruptFileError: if the array is truncated, lacks a chunk, or
                holds NaN or infinity.
        """
        shape = self.shapes[name]
        if not shape:
            raise CorruptFileError(
                f"Expected an array with axes in {self._directory}. Received: "
                f"{name} of shape (). Get the checkpoint again."
            )
        return self.read_rows(name, 0, shape[0])

    def read_rows(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return some rows of an array as float32.

        Args:
            name: a key of `shapes`.
            start: int. First row.
            stop: int. Behind the last row.

        Returns:
            float32 array `[stop - start, ...]`.

        Raises:
            CorruptFileError: as `read`.
        """
        array = self._arrays[name]
        if self._last is not array and isinstance(self._last, ZarrArray):
            # Decoded chunks are of use for the next rows of one array only.
            self._last.close()
        self._last = array
        rows = array.read_rows(start, stop)
        if self.dtypes[name] == "bfloat16":
            # bfloat16 is the upper half of float32.
            rows = (rows.astype(np.uint32) << 16).view(np.float32)
        rows = rows.astype(np.float32, copy=False)
        if not np.isfinite(rows).all():
            raise CorruptFileError(
                f"Expected finite weights in {self._directory}. Received: "
                f"NaN or infinity in {name}. Use another checkpoint."
            )
        return rows

    def _array(
        self, name: str, leaf: Any, version: int
    ) -> InlineArray | ZarrArray:
        if isinstance(leaf, str) and leaf.startswith(_ORBAX_LEAF):
            raise CorruptFileError(self._orbax_message(f"{name}={leaf!r}"))
        try:
            array = self._found_array(leaf, version)
        except ValueError as error:
            raise CorruptFileError(
                f"Expected {name} in {self._directory / TREE_FILE} to be an "
                f"array, or the place of one below the folder. Received: "
                f"{error}. Do not use this checkpoint unless you know who made "
                "it."
            ) from error
        if array.dtype not in _DTYPES:
            raise InvalidInputError(
                f"Expected a float array, one of {_DTYPES}. Received: {name} "
                f"of type {array.dtype}. Save the weights as float32; "
                "quantised weights cannot be read."
            )
        return array

    def _found_array(self, leaf: Any, version: int) -> InlineArray | ZarrArray:
        if isinstance(leaf, Extent):
            return inline_array(self._directory / TREE_FILE, leaf)
        if not isinstance(leaf, dict):
            raise ValueError(repr(leaf))
        if CHUNKED in leaf:
            return inline_array(self._directory / TREE_FILE, leaf)
        return zarr_array(self._directory, leaf, version)

    def _step(self, leaf: Any) -> int | None:
        """Return the step if it is stored as one integer."""
        if isinstance(leaf, Extent):
            try:
                array = inline_array(self._directory / TREE_FILE, leaf)
            except ValueError:
                return None
            leaf = array.read_scalar() if math.prod(array.shape) == 1 else None
        return leaf if type(leaf) is int else None

    def _no_tree_message(self) -> str:
        there = [n for n in _ORBAX_FILES if (self._directory / n).exists()]
        if there:
            return self._orbax_message(there)
        steps = sorted(
            path.parent.name
            for path in self._directory.glob(f"checkpoint_*/{TREE_FILE}")
        )
        advice = (
            f"Pass one of the folders {steps}."
            if steps
            else ("Pass the folder `checkpoint_<step>`.")
        )
        return (
            f"Expected a t5x checkpoint with the file {TREE_FILE}. Received: "
            f"directory={str(self._directory)!r}. {advice}"
        )

    def _orbax_message(self, found: object) -> str:
        return (
            "Expected t5x's own layout: a msgpack file `checkpoint` that gives "
            "the place of every zarr array. Received: orbax's layout in "
            f"{self._directory}, with {found}. Restore it with t5x and save it "
            "with t5x.checkpoints.Checkpointer."
        )


def _leaves(
    tree: dict[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield dotted name and leaf."""
    for key, value in tree.items():
        is_branch = isinstance(value, dict) and not (
            CHUNKED in value or isinstance(value.get("driver"), str)
        )
        if is_branch:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
