"""Writing of safetensors files, one tensor in memory at a time."""

import json
import math
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tf_samtone.checkpoints._json_file import write_json
from tf_samtone.errors import InvalidInputError

MAX_SHARD_BYTES = 5_000_000_000
_ITEM_BYTES = 4
# Readers map the values into memory, where they want them aligned.
_ALIGNMENT = 8


@dataclass(frozen=True)
class StoredTensor:
    """A tensor of a file that is to be written.

    Attributes:
        name: str. Its key.
        shape: tuple of int, as stored.
        read: function that returns the values, an array of that shape of a
            float type. Called once, when they are written.
    """

    name: str
    shape: tuple[int, ...]
    read: Callable[[], np.ndarray]

    @property
    def num_bytes(self) -> int:
        """Bytes of its values as float32."""
        return _ITEM_BYTES * math.prod(self.shape)


def check_shard_bytes(max_shard_bytes: int) -> None:
    """Raise `InvalidInputError` unless the limit is an int, 1 or more."""
    if type(max_shard_bytes) is not int or max_shard_bytes < 1:
        raise InvalidInputError(
            "Expected `max_shard_bytes`, an int of at least 1. Received: "
            f"max_shard_bytes={max_shard_bytes!r}. The usual limit is "
            f"{MAX_SHARD_BYTES}."
        )


def write_tensor_folder(
    directory: pathlib.Path,
    tensors: Sequence[StoredTensor],
    *,
    max_shard_bytes: int = MAX_SHARD_BYTES,
) -> None:
    """Write `model.safetensors`, or shards and their index.

    Args:
        directory: folder to write to.
        tensors: the tensors, in the order in which they are stored.
        max_shard_bytes: int. Bytes of values of a file; a tensor that alone
            has more gets a file of its own. Defaults to 5 GB.
    """
    shards = _shards(tensors, max_shard_bytes)
    if len(shards) == 1:
        write_tensors(directory / "model.safetensors", shards[0])
        return
    weight_map: dict[str, str] = {}
    for number, shard in enumerate(shards, start=1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write_tensors(directory / file, shard)
        weight_map |= {tensor.name: file for tensor in shard}
    total = sum(tensor.num_bytes for tensor in tensors)
    write_json(
        directory / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": weight_map},
    )


def write_tensors(path: pathlib.Path, tensors: Sequence[StoredTensor]) -> None:
    """Write one safetensors file of float32 values.

    Args:
        path: the file.
        tensors: the tensors, in the order in which they are stored.
    """
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for tensor in tensors:
        start, end = end, end + tensor.num_bytes
        header[tensor.name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for tensor in tensors:
            values = np.ascontiguousarray(tensor.read(), dtype="<f4")
            if values.shape != tensor.shape:
                raise ValueError(
                    f"Expected {tensor.name} of shape {tensor.shape}. "
                    f"Received: shape={values.shape}."
                )
            file.write(values.data)


def _shards(
    tensors: Sequence[StoredTensor], max_shard_bytes: int
) -> list[list[StoredTensor]]:
    shards: list[list[StoredTensor]] = [[]]
    room = max_shard_bytes
    for tensor in tensors:
        if shards[-1] and tensor.num_bytes > room:
            shards.append([])
            room = max_shard_bytes
        shards[-1].append(tensor)
        room -= tensor.num_bytes
    return shards
