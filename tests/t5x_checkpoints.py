"""Writes checkpoints as t5x does: tensorstore, msgpack and NumPy only.

Neither the library under test nor t5x has a part in it. Partitioned arrays
are zarr folders, with a tensorstore spec in their place in the msgpack file;
the others lie in that file.
"""

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import msgpack
import numpy as np
import tensorstore

VOCABULARY_SIZE = 384


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5xCheckpoint:
    """How a checkpoint is written.

    Attributes:
        version: int. Of the format. Defaults to 3; 2 stores bfloat16 in zarr
            as the integers of the same bits.
        dtype: `"float32"`, `"float16"` or `"bfloat16"`.
        is_inline: from (name, array) to whether the array lies in the msgpack
            file. Defaults to those of t5x_retrieval's test checkpoint: all but
            the token embeddings and the kernels of the layers.
        storage: driver of tensorstore's storage that the specs name. Defaults
            to `"file"`.
        path_beside_storage: bool. Puts the path where tensorstore before
            0.1.14 had it. Defaults to `False`.
        chunk_rows: int or `None`. Rows of a zarr chunk. Defaults to all.
        largest_inline_bytes: int. Larger inline arrays are split, as flax does
            above 1 GiB.
        step: int. Training step. Defaults to 1000.
        wrapped: bool. Whether the state is under `optimizer`. Defaults to
            `True`.
    """

    version: int = 3
    dtype: str = "float32"
    is_inline: Callable[[str, np.ndarray], bool] | None = None
    storage: str = "file"
    path_beside_storage: bool = False
    chunk_rows: int | None = None
    largest_inline_bytes: int = 2**30
    step: int = 1000
    wrapped: bool = True

    def write(self, directory: pathlib.Path, weights: dict) -> pathlib.Path:
        """Writes weights, by dotted name; returns the folder."""
        directory.mkdir(parents=True, exist_ok=True)
        target: dict[str, Any] = {}
        for name, array in weights.items():
            *branch, last = name.split(".")
            node = target
            for part in branch:
                node = node.setdefault(part, {})
            node[last] = self._leaf(directory, name, np.asarray(array))
        state = {
            "step": np.array(self.step, np.int32),
            "param_states": _optimizer_state(weights),
        }
        self.write_tree(directory, {"target": target, "state": state})
        return directory

    def write_tree(self, directory: pathlib.Path, state: dict) -> None:
        """Writes the msgpack file."""
        tree = {"version": self.version, "optimizer": state}
        pack_tree(directory / "checkpoint", tree if self.wrapped else state)

    def _leaf(self, directory: pathlib.Path, name: str, array: np.ndarray):
        if array.dtype == np.float32:
            array = array.astype(stored_dtype(self.dtype))
        is_inline = self.is_inline or _inline_in_t5x_retrieval
        if is_inline(name, array):
            return self._inline(array)
        return self._write_zarr(directory, f"target.{name}", array)

    def _inline(self, array: np.ndarray) -> Any:
        if array.nbytes <= self.largest_inline_bytes:
            return array
        flat, size = array.reshape(-1), self.largest_inline_bytes
        size //= array.itemsize
        chunks = [flat[i : i + size] for i in range(0, flat.size, size)]
        return {
            "__msgpack_chunked_array__": True,
            "shape": {str(i): n for i, n in enumerate(array.shape)},
            "chunks": {str(i): chunk for i, chunk in enumerate(chunks)},
        }

    def _write_zarr(
        self, directory: pathlib.Path, name: str, array: np.ndarray
    ) -> dict[str, Any]:
        if self.version < 3 and array.dtype == ml_dtypes.bfloat16:
            array = array.view(np.uint16)
        metadata = {
            "compressor": {"id": "gzip"},
            "shape": list(array.shape),
            "chunks": [self.chunk_rows or array.shape[0], *array.shape[1:]],
        }
        spec = {
            "driver": "zarr",
            "dtype": array.dtype.name,
            "metadata": metadata,
        }
        storage = {"driver": "file", "path": str(directory / name)}
        store = tensorstore.open({**spec, "kvstore": storage}, create=True)
        store.result().write(array).result()
        storage = {"driver": self.storage}
        if self.storage == "gcs":
            storage["bucket"] = "t5x-dummy-bucket"
        if self.path_beside_storage:
            return {**spec, "kvstore": storage, "path": name}
        return {**spec, "kvstore": {**storage, "path": name}}


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5xWeights:
    """Random weights of an encoder, by t5x's names.

    Attributes:
        layers: int. Defaults to 2.
        gated: bool. Gated as in T5 1.1. Defaults to `True`.
        head_axes: bool. Attention kernels with an axis for the heads.
        encoder: first part of the names.
        own_embedding: bool. Token embeddings inside the encoder.
        seed: int.
    """

    layers: int = 2
    gated: bool = True
    head_axes: bool = False
    encoder: str = "encoder"
    own_embedding: bool = False
    seed: int = 0
    # heads * key_value differs from hidden on purpose.
    hidden: int = 12
    heads: int = 2
    key_value: int = 5
    wide: int = 20

    def make(self) -> dict[str, np.ndarray]:
        """Returns float32 arrays."""
        random = np.random.default_rng(self.seed)
        return {
            name: (
                1 + 0.2 * random.standard_normal(shape)
                if name.endswith(".scale")
                else random.standard_normal(shape) / np.sqrt(shape[0])
            ).astype(np.float32)
            for name, shape in self._shapes().items()
        }

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        hidden, inner = (self.hidden,), (self.heads * self.key_value,)
        if self.head_axes:
            inner = (self.heads, self.key_value)
        wide = (self.wide,)
        embedding = "token_embedder.embedding"
        if self.own_embedding:
            embedding = f"{self.encoder}.{embedding}"
        shapes = {
            embedding: (VOCABULARY_SIZE, *hidden),
            f"{self.encoder}.relpos_bias.rel_embedding": (self.heads, 32),
            f"{self.encoder}.encoder_norm.scale": hidden,
        }
        for i in range(self.layers):
            layer = f"{self.encoder}.layers_{i}"
            for part in ("query", "key", "value"):
                shapes[f"{layer}.attention.{part}.kernel"] = hidden + inner
            shapes[f"{layer}.attention.out.kernel"] = inner + hidden
            for part in ("wi_0", "wi_1") if self.gated else ("wi",):
                shapes[f"{layer}.mlp.{part}.kernel"] = hidden + wide
            shapes[f"{layer}.mlp.wo.kernel"] = wide + hidden
            for part in ("attention", "mlp"):
                shapes[f"{layer}.pre_{part}_layer_norm.scale"] = hidden
        return shapes


def pack_tree(path: pathlib.Path, tree: dict) -> None:
    """Writes a tree of dicts and arrays as flax does."""
    path.write_bytes(msgpack.packb(tree, default=_extension, strict_types=True))


def stored_dtype(name: str) -> np.dtype:
    """Returns the NumPy type of a name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def _extension(value: Any) -> msgpack.ExtType:
    code = 1 if isinstance(value, np.ndarray) else 3
    array = np.asarray(value)
    fields = (list(array.shape), array.dtype.name, array.tobytes())
    return msgpack.ExtType(code, msgpack.packb(fields, use_bin_type=True))


def _inline_in_t5x_retrieval(name: str, array: np.ndarray) -> bool:
    return array.ndim < 2 or not (
        "layers_" in name or name.endswith("token_embedder.embedding")
    )


def _optimizer_state(weights: dict) -> dict[str, Any]:
    """Returns a state with an array that is not there: nobody may read it."""
    absent = {
        "driver": "zarr",
        "dtype": "float32",
        "kvstore": {"driver": "file", "path": "state.param_states.absent"},
        "metadata": {"shape": [3], "chunks": [3]},
    }
    rows = {name: {"v": np.zeros(1, np.float32)} for name in weights}
    return {**rows, "absent": {"v_row": absent}}
