"""A zarr array in the folder of a t5x checkpoint."""

import math
import pathlib
from typing import Any

import numpy as np

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.errors import CorruptFileError, MissingDependencyError

__all__ = ["ZarrArray", "zarr_array"]

_STORAGE = ("file", "gfile", "gcs")
_DTYPES = {"<f4": "float32", "<f2": "float16", "bfloat16": "bfloat16"}
_UINT16 = "<u2"
# Until 2021 bfloat16 was stored as the integer of the same bits.
_FIRST_VERSION_WITH_BFLOAT16 = 3


class ZarrArray:
    """One array, read by tensorstore when rows are asked for.

    Args:
        path: folder of the array.
        shape: tuple of int.
        dtype: str. `"float32"`, `"float16"`, `"bfloat16"`, or zarr's name of
            another type.
        chunks: tuple of int. Shape of a chunk.
    """

    def __init__(
        self,
        path: pathlib.Path,
        shape: tuple[int, ...],
        dtype: str,
        chunks: tuple[int, ...],
    ) -> None:
        self.path = path
        self.shape = shape
        self.dtype = dtype
        self._chunk_rows = max(1, chunks[0]) if chunks else 1
        # Room for the decoded chunks of one band of rows, at four bytes an
        # element: reading on in the band decodes nothing twice.
        band = math.prod([self._chunk_rows, *shape[1:]])
        self._cache_bytes = 4 * band + 2**16
        self._store: Any = None
        self._band = -1

    def read_rows(self, start: int, stop: int) -> np.ndarray:
        """Return rows of the stored type; bfloat16 as its bits, uint16."""
        pieces: list[np.ndarray] = []
        while start < stop or not pieces:
            band = start // self._chunk_rows
            end = min(stop, (band + 1) * self._chunk_rows)
            pieces.append(self._read_band(band, start, end))
            start = end
        rows = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
        return rows.view(np.uint16) if self.dtype == "bfloat16" else rows

    def _read_band(self, band: int, start: int, stop: int) -> np.ndarray:
        if band != self._band:
            # Before the next chunks are decoded, not when there is no room.
            self.close()
        try:
            if self._store is None:
                self._store = _open(self.path, self._cache_bytes)
            self._band = band
            return np.asarray(self._store[start:stop].read().result())
        # tensorstore has no errors of its own.
        except (ValueError, OSError) as error:
            raise CorruptFileError(
                f"Expected a zarr array with all its chunks in {self.path}. "
                f"Received: {error}. Get the checkpoint again."
            ) from error

    def close(self) -> None:
        """Forget the decoded chunks."""
        self._store, self._band = None, -1


def zarr_array(
    directory: pathlib.Path, spec: dict[str, Any], version: int
) -> ZarrArray:
    """Find the array that a tensorstore spec describes.

    The spec itself is never opened: it could name any file of the machine or
    a place in the network.

    Args:
        directory: folder of the checkpoint.
        spec: the spec, as in the checkpoint.
        version: int. Of the checkpoint.

    Returns:
        `ZarrArray`.

    Raises:
        CorruptFileError: if the array is missing, or is not what the spec
            says.
        MissingDependencyError: if tensorstore is not installed.
        ValueError: if the spec does not name a zarr array of the folder.
    """
    _tensorstore()
    path = directory / _folder_name(spec)
    described = path / ".zarray"
    if not path.resolve().is_relative_to(directory.resolve()):
        raise ValueError(f"a link out of the checkpoint's folder, {path}")
    if not described.is_file():
        raise CorruptFileError(
            f"Expected the array folder {path} with {described.name}. "
            "Received: none. Get the whole checkpoint."
        )
    metadata = read_json_object(described)
    shape = _shape(metadata, "shape", described)
    chunks = _shape(metadata, "chunks", described)
    expected = spec.get("metadata")
    if isinstance(expected, dict) and "shape" in expected:
        expected_shape = _shape(expected, "shape", directory / "checkpoint")
        if expected_shape != shape:
            raise CorruptFileError(
                f"Expected {path} of shape {expected_shape}, as the file "
                f"`checkpoint` says. Received: shape={shape} in "
                f"{described.name}. Get the checkpoint again."
            )
    stored = metadata.get("dtype")
    if stored == _UINT16 and version < _FIRST_VERSION_WITH_BFLOAT16:
        stored = "bfloat16"
    dtype = _DTYPES.get(str(stored), str(stored))
    return ZarrArray(path, shape, dtype, chunks)


def _folder_name(spec: dict[str, Any]) -> str:
    """Return the relative path of the array, refusing any other."""
    storage = spec.get("kvstore")
    if spec.get("driver") != "zarr" or not isinstance(storage, dict):
        raise ValueError(f"the tensorstore driver {spec.get('driver')!r}")
    if storage.get("driver") not in _STORAGE:
        raise ValueError(f"the storage {storage.get('driver')!r}")
    # tensorstore before 0.1.14 had the path beside the storage.
    name = storage.get("path", spec.get("path"))
    if not isinstance(name, str):
        raise ValueError(f"the path {name!r}")
    parts = name.removesuffix("/").split("/")
    if "\\" in name or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f"the path {name!r}, not one below the checkpoint")
    return "/".join(parts)


def _shape(
    metadata: dict[str, Any], key: str, where: pathlib.Path
) -> tuple[int, ...]:
    value = metadata.get(key)
    if not isinstance(value, list) or not all(
        type(size) is int and size >= 0 for size in value
    ):
        raise CorruptFileError(
            f"Expected a list of integers as `{key}` in {where}. Received: "
            f"{key}={value!r}. Get the checkpoint again."
        )
    return tuple(value)


def _open(path: pathlib.Path, cache_bytes: int) -> Any:
    spec = {
        "driver": "zarr",
        "kvstore": {"driver": "file", "path": f"{path.resolve()}/"},
        # Otherwise a missing chunk is read as zeros.
        "fill_missing_data_reads": False,
        "recheck_cached_data": "open",
        "context": {"cache_pool": {"total_bytes_limit": cache_bytes}},
    }
    return _tensorstore().open(spec, open=True, read=True).result()


def _tensorstore() -> Any:
    try:
        import tensorstore
    except ImportError as error:
        raise MissingDependencyError(
            "Expected the package tensorstore, to read a t5x checkpoint. "
            "Received: it is not installed. Run "
            '`pip install "tf-samtone[t5x]"`.'
        ) from error
    return tensorstore
