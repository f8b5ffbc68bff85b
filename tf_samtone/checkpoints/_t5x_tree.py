"""The msgpack file of a t5x checkpoint, without the arrays in it."""

import os
import pathlib
from dataclasses import dataclass
from typing import Any, BinaryIO

from tf_samtone.errors import CorruptFileError, MissingDependencyError

__all__ = ["Extent", "T5xTree", "read_t5x_tree"]

# A parameter's path has about six parts; a tree this deep is no checkpoint.
_MAX_DEPTH = 32
_READ_BYTES = 64 * 1024
# First bytes of msgpack's maps and of its extension types.
_MAPS = frozenset({*range(0x80, 0x90), 0xDE, 0xDF})
_EXTENSIONS = frozenset({0xC7, 0xC8, 0xC9, *range(0xD4, 0xD9)})


@dataclass(frozen=True)
class Extent:
    """Where an extension value, an array, lies in the file.

    Attributes:
        start: int. Offset of its first byte.
        stop: int. Offset behind its last byte.
    """

    start: int
    stop: int


@dataclass(frozen=True)
class T5xTree:
    """What a t5x checkpoint says, apart from the state of its optimizer.

    Attributes:
        version: int. Of the format; 0 if the file has none.
        target: nested dict of the model's weights. A leaf is an `Extent`, the
            dict of a tensorstore spec, or another msgpack value.
        step: `Extent`, msgpack value or `None`. The training step.
    """

    version: int
    target: dict[str, Any]
    step: Any


def read_t5x_tree(path: pathlib.Path) -> T5xTree:
    """Read the structure of a t5x checkpoint.

    Nothing is unpickled: the format has no code in it. Arrays in the file and
    the state of the optimizer are skipped.

    Args:
        path: the file `checkpoint` of a t5x checkpoint.

    Returns:
        `T5xTree`.

    Raises:
        CorruptFileError: if the file is no msgpack map, is truncated, or has
            no weights.
        MissingDependencyError: if msgpack is not installed.
    """
    try:
        import msgpack
    except ImportError as error:
        raise MissingDependencyError(
            "Expected the package msgpack, to read a t5x checkpoint. Received: "
            'it is not installed. Run `pip install "tf-samtone[t5x]"`.'
        ) from error
    with path.open("rb") as file:
        try:
            return _Walker(file, msgpack).read()
        # msgpack's own errors are not all of one built-in type.
        except (msgpack.UnpackException, ValueError, RecursionError) as error:
            raise CorruptFileError(
                f"Expected the msgpack map of a t5x checkpoint in {path}. "
                f"Received: {error!r}, {os.path.getsize(path)} bytes. Get the "
                "file again."
            ) from error


class _Walker:
    """Reads the file once, from its start to its end."""

    def __init__(self, file: BinaryIO, msgpack: Any) -> None:
        self._descriptor = file.fileno()
        self._unpacker = msgpack.Unpacker(
            file,
            read_size=_READ_BYTES,
            # An inline array may have 1 GiB; the default stops at 100 MB.
            max_buffer_size=0,
            ext_hook=_refuse_extension,
        )
        self._found: dict[str, Any] = {}

    def read(self) -> T5xTree:
        self._read_state(is_top=True)
        version = self._found.get("version", 0)
        if type(version) is not int:
            raise ValueError(f"`version` is {version!r}, not an integer")
        target = self._found.get("target")
        if not isinstance(target, dict) or not target:
            raise ValueError("no map of weights under `target`")
        return T5xTree(version, target, self._found.get("step"))

    def _read_state(self, *, is_top: bool = False) -> None:
        """Reads `target` and the step, at the top or under `optimizer`."""
        for key in self._keys():
            if key == "target":
                self._keep("target", self._value(depth=0))
            elif key == "state" and self._is(_MAPS):
                self._read_step()
            elif key == "optimizer" and is_top and self._is(_MAPS):
                self._read_state()
            elif key == "version" and is_top:
                self._keep("version", self._unpacker.unpack())
            else:
                self._unpacker.skip()

    def _read_step(self) -> None:
        for key in self._keys():
            if key == "step":
                self._keep("step", self._value(depth=0))
            else:
                self._unpacker.skip()

    def _value(self, depth: int) -> Any:
        if depth > _MAX_DEPTH:
            raise ValueError(f"maps in maps, {depth} deep")
        if self._is(_MAPS):
            value: dict[str, Any] = {}
            for key in self._keys():
                if key in value:
                    raise ValueError(f"the key {key!r} twice in one map")
                value[key] = self._value(depth + 1)
            return value
        if self._is(_EXTENSIONS):
            start = self._unpacker.tell()
            self._unpacker.skip()
            return Extent(start, self._unpacker.tell())
        return self._unpacker.unpack()

    def _keys(self) -> Any:
        for _ in range(self._unpacker.read_map_header()):
            key = self._unpacker.unpack()
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r}, not a string")
            yield key

    def _is(self, first_bytes: frozenset[int]) -> bool:
        byte = os.pread(self._descriptor, 1, self._unpacker.tell())
        return bool(byte) and byte[0] in first_bytes

    def _keep(self, name: str, value: Any) -> None:
        if name in self._found:
            raise ValueError(f"`{name}` twice")
        self._found[name] = value


def _refuse_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"an extension value of type {code} inside a list")
