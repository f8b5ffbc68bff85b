"""Writes Hugging Face T5 folders of random weights.

NumPy and JSON only: neither the library under test nor torch has a part in
it, so that folders are the same wherever the tests run. Weights
follow from a seed, bit for bit: they are sums of the raw integers of PCG64,
whose stream NumPy guarantees, and need no function of the C library.
"""

import dataclasses
import hashlib
import json
import pathlib
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np

VOCABULARY = pathlib.Path(__file__).parent / "data_files" / "tiny.spm"
VOCABULARY_SIZE = 384

_BUCKETS = 32
_DTYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class T5Folder:
    """A Hugging Face T5 folder of random weights.

    Attributes:
        layers: int. Encoder layers. Defaults to 2.
        gated: bool. Gated GELU, as in T5 1.1; plain ReLU, as in T5 1.0,
            otherwise. Defaults to `False`.
        seed: int. Defaults to 0.
        dtype: `"float32"`, `"float16"` or `"bfloat16"`, of the file. Defaults
            to `"float32"`.
        shards: int. Weight files. Defaults to 1.
        decoder: bool. Adds some tensors of a decoder. Defaults to `False`.
    """

    layers: int = 2
    gated: bool = False
    seed: int = 0
    dtype: str = "float32"
    shards: int = 1
    decoder: bool = False
    # heads * key_value differs from hidden on purpose.
    hidden: int = 24
    heads: int = 2
    key_value: int = 10
    feed_forward: int = 40

    def config(self) -> dict[str, Any]:
        """Returns the content of `config.json`."""
        kind = (
            "T5ForConditionalGeneration" if self.decoder else "T5EncoderModel"
        )
        return {
            "architectures": [kind],
            "d_ff": self.feed_forward,
            "d_kv": self.key_value,
            "d_model": self.hidden,
            "dropout_rate": 0.1,
            "eos_token_id": 1,
            "feed_forward_proj": "gated-gelu" if self.gated else "relu",
            "is_encoder_decoder": self.decoder,
            "layer_norm_epsilon": 1e-06,
            "model_type": "t5",
            "num_decoder_layers": self.layers,
            "num_heads": self.heads,
            "num_layers": self.layers,
            "pad_token_id": 0,
            "relative_attention_max_distance": 128,
            "relative_attention_num_buckets": _BUCKETS,
            "tie_word_embeddings": not self.gated,
            "torch_dtype": self.dtype,
            "vocab_size": VOCABULARY_SIZE,
        }

    def tensors(self) -> dict[str, np.ndarray]:
        """Returns name to float32 values, at which every part matters.

        The usual initial values leave the position bias and the attention
        scores close to zero: mistakes there would not show.
        """
        noise = Noise(self.seed)
        tensors = {}
        for name, shape in self._shapes():
            values = noise.draw(shape)
            if name.endswith("layer_norm.weight"):
                values = 1.0 + 0.3 * values
            elif (
                len(shape) == 2 and "bias" not in name and "shared" not in name
            ):
                values = values / np.sqrt(shape[1])
            tensors[name] = values.astype(np.float32)
        return tensors

    def write(self, directory: pathlib.Path) -> dict[str, np.ndarray]:
        """Writes the folder and returns its tensors in float32.

        The tokenizer's `spiece.model` and `tokenizer_config.json` are part of
        it.
        """
        directory.mkdir(parents=True, exist_ok=True)
        write_json(directory / "config.json", self.config())
        shutil.copyfile(VOCABULARY, directory / "spiece.model")
        write_json(
            directory / "tokenizer_config.json",
            {
                "eos_token": "</s>",
                "extra_ids": 100,
                "model_max_length": 512,
                "pad_token": "<pad>",
                "tokenizer_class": "T5Tokenizer",
                "unk_token": "<unk>",
            },
        )
        tensors = self.tensors()
        _write_shards(directory, tensors, self.dtype, self.shards)
        return tensors

    def _shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yields names and shapes, linear layers as [out, in]."""
        inner = self.heads * self.key_value
        yield "shared.weight", (VOCABULARY_SIZE, self.hidden)
        for i in range(self.layers):
            attention = f"encoder.block.{i}.layer.0"
            for part in "qkv":
                yield (
                    f"{attention}.SelfAttention.{part}.weight",
                    (inner, self.hidden),
                )
            yield f"{attention}.SelfAttention.o.weight", (self.hidden, inner)
            if i == 0:
                yield (
                    f"{attention}.SelfAttention.relative_attention_bias.weight",
                    (_BUCKETS, self.heads),
                )
            yield f"{attention}.layer_norm.weight", (self.hidden,)
            dense = f"encoder.block.{i}.layer.1"
            for part in ("wi_0", "wi_1") if self.gated else ("wi",):
                yield (
                    f"{dense}.DenseReluDense.{part}.weight",
                    (self.feed_forward, self.hidden),
                )
            yield (
                f"{dense}.DenseReluDense.wo.weight",
                (self.hidden, self.feed_forward),
            )
            yield f"{dense}.layer_norm.weight", (self.hidden,)
        yield "encoder.final_layer_norm.weight", (self.hidden,)
        if self.decoder:
            yield "decoder.final_layer_norm.weight", (self.hidden,)
            yield "lm_head.weight", (VOCABULARY_SIZE, self.hidden)


class Noise:
    """Numbers of mean 0 and deviation 1, exactly the same everywhere."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def draw(self, shape: tuple[int, ...]) -> np.ndarray:
        """Returns float64 sums of four uniform 16-bit integers, scaled."""
        raw = self._bits.random_raw(int(np.prod(shape)))
        parts = [
            (raw >> np.uint64(s)) & np.uint64(0xFFFF) for s in (0, 16, 32, 48)
        ]
        sums = np.sum(parts, axis=0).astype(np.int64) - 2 * 0xFFFF
        return (sums / (0x10000 / np.sqrt(3.0))).reshape(shape)


def digest(tensors: dict[str, np.ndarray]) -> str:
    """Returns the SHA-256 of names, shapes and little-endian float32 values."""
    sha = hashlib.sha256()
    for name in sorted(tensors):
        value = tensors[name]
        sha.update(f"{name}{value.shape}".encode())
        sha.update(value.astype("<f4").tobytes())
    return sha.hexdigest()


def save_tensors(
    path: pathlib.Path,
    tensors: dict[str, np.ndarray],
    dtype: str = "float32",
) -> None:
    """Writes float32 values to a safetensors file in another float type.

    The file is the length of the header, the header in JSON, and the values
    one after the other.
    """
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, value in tensors.items():
        start = len(data)
        data += _bytes(value, dtype)
        header[name] = {
            "dtype": _DTYPES[dtype],
            "shape": list(value.shape),
            "data_offsets": [start, len(data)],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _bytes(values: np.ndarray, dtype: str) -> bytes:
    if dtype != "bfloat16":
        return values.astype(np.dtype(dtype).newbyteorder("<")).tobytes()
    # The upper half of a float32, rounded to the nearest, ties to even.
    bits = values.astype("<f4").view("<u4").astype(np.uint64)
    rounded = (bits + 0x7FFF + ((bits >> np.uint64(16)) & np.uint64(1))) >> 16
    return rounded.astype("<u2").tobytes()


def _write_shards(
    directory: pathlib.Path,
    tensors: dict[str, np.ndarray],
    dtype: str,
    shards: int,
) -> None:
    if shards == 1:
        save_tensors(directory / "model.safetensors", tensors, dtype)
        return
    weight_map = {}
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = dict(list(tensors.items())[number::shards])
        save_tensors(directory / file, part, dtype)
        weight_map |= dict.fromkeys(part, file)
    item_size = 4 if dtype == "float32" else 2
    total = item_size * sum(value.size for value in tensors.values())
    write_json(
        directory / "model.safetensors.index.json",
        {"metadata": {"total_size": total}, "weight_map": weight_map},
    )


def write_json(path: pathlib.Path, content: Any) -> None:
    """Writes a JSON file as Hugging Face's libraries do."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
