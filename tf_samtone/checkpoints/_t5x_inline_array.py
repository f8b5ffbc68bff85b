"""Arrays that lie inside the msgpack file of a t5x checkpoint."""

import math
import os
import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from tf_samtone.checkpoints._t5x_tree import Extent

__all__ = ["CHUNKED", "InlineArray", "inline_array"]

# flax splits arrays above 1 GiB; this key marks the parts.
CHUNKED = "__msgpack_chunked_array__"
ITEM_BYTES = {
    "bfloat16": 2,
    "bool": 1,
    "float16": 2,
    "float32": 4,
    "float64": 8,
    **{f"{sign}int{8 * n}": n for sign in ("", "u") for n in (1, 2, 4, 8)},
}
# flax: 1 is an array, 3 a NumPy scalar, 2 a Python complex number.
_ARRAY_TYPES = (1, 3)
_FIXED_EXTENSIONS = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}
_SIZED_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_BINARIES = {0xC4: 1, 0xC5: 2, 0xC6: 4}
# More than any header: a shape has a few axes.
_HEADER_BYTES = 512


@dataclass(frozen=True)
class InlineArray:
    """One array in the file, in row-major order.

    Attributes:
        path: the file.
        shape: tuple of int.
        dtype: str. NumPy's name of the type, or `"bfloat16"`.
        parts: tuple of (offset in the file, number of elements).
    """

    path: pathlib.Path
    shape: tuple[int, ...]
    dtype: str
    parts: tuple[tuple[int, int], ...]

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the stored type; bfloat16 as its bits, uint16."""
        row = math.prod(self.shape[1:])
        elements = self._elements(start * row, stop * row)
        return elements.reshape(stop - start, *self.shape[1:])

    def read_scalar(self) -> Any:
        """Return the one element of an array without axes."""
        return self._elements(0, 1).item()

    def _elements(self, start: int, stop: int) -> np.ndarray:
        dtype = _stored_dtype(self.dtype)
        pieces, first = [np.empty(0, dtype)], 0
        for offset, size in self.parts:
            begin, end = max(start, first), min(stop, first + size)
            if begin < end:
                position = offset + (begin - first) * dtype.itemsize
                pieces.append(
                    np.fromfile(self.path, dtype, end - begin, offset=position)
                )
            first += size
        return pieces[1] if len(pieces) == 2 else np.concatenate(pieces)


def inline_array(path: pathlib.Path, leaf: Any) -> InlineArray:
    """Read the header of an array in the file, not its elements.

    Args:
        path: the file.
        leaf: `Extent` of an array, or flax's dict of the parts of a large one.

    Returns:
        `InlineArray`.

    Raises:
        ValueError: if the leaf is no array that flax writes.
    """
    if isinstance(leaf, Extent):
        return _whole_array(path, leaf)
    shape, chunks = _in_order(leaf.get("shape")), _in_order(leaf.get("chunks"))
    if not all(isinstance(chunk, Extent) for chunk in chunks) or not chunks:
        raise ValueError("an array in parts that are no arrays")
    arrays = [_whole_array(path, chunk) for chunk in chunks]
    dtypes = {array.dtype for array in arrays}
    parts = tuple(part for array in arrays for part in array.parts)
    if len(dtypes) != 1 or math.prod(_checked_shape(shape)) != sum(
        size for _, size in parts
    ):
        raise ValueError(
            f"an array of shape {shape} in parts of {sorted(dtypes)} with "
            f"{[size for _, size in parts]} elements"
        )
    return InlineArray(path, tuple(shape), dtypes.pop(), parts)


def _whole_array(path: pathlib.Path, extent: Extent) -> InlineArray:
    # Installed, or there would be no extent.
    import msgpack

    with path.open("rb") as file:
        size = min(_HEADER_BYTES, extent.stop - extent.start)
        head = os.pread(file.fileno(), size, extent.start)
    code, body = _extension_header(head)
    if code not in _ARRAY_TYPES:
        raise ValueError(f"an extension value of type {code}, not an array")
    unpacker = msgpack.Unpacker()
    unpacker.feed(head[body:])
    try:
        if unpacker.read_array_header() != 3:
            raise ValueError("an array without shape, type and bytes")
        shape, dtype = unpacker.unpack(), unpacker.unpack()
    except msgpack.UnpackException as error:
        raise ValueError(f"an array with a broken header: {error!r}") from error
    if dtype not in ITEM_BYTES:
        raise ValueError(f"an array of type {dtype!r}")
    elements = math.prod(_checked_shape(shape))
    data = body + unpacker.tell()
    binary = _BINARIES.get(head[data] if data < len(head) else 0)
    offset = extent.start + data + 1 + (binary or 0)
    stored = extent.stop - offset
    if binary is None or stored != elements * ITEM_BYTES[dtype]:
        raise ValueError(f"{stored} bytes for {shape} elements of {dtype}")
    return InlineArray(path, tuple(shape), dtype, ((offset, elements),))


def _extension_header(head: bytes) -> tuple[int, int]:
    """Return the type of an extension value and the length of its header."""
    if head[0] in _FIXED_EXTENSIONS:
        return head[1], 2
    type_at = 1 + _SIZED_EXTENSIONS[head[0]]
    return head[type_at], type_at + 1


def _checked_shape(shape: Any) -> list[int]:
    if not isinstance(shape, list) or not all(
        type(size) is int and size >= 0 for size in shape
    ):
        raise ValueError(f"an array of shape {shape!r}")
    return shape


def _in_order(values: Any) -> list[Any]:
    """Return the values of flax's {"0": ..., "1": ...} as a list."""
    keys = [str(i) for i in range(len(values or ()))]
    if not isinstance(values, dict) or sorted(values) != sorted(keys):
        raise ValueError(f"an array in parts with the keys {values!r}")
    return [values[key] for key in keys]


def _stored_dtype(name: str) -> np.dtype:
    little_endian = np.dtype("uint16" if name == "bfloat16" else name)
    return little_endian.newbyteorder("<")
