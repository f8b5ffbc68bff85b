"""Writes sentence-transformers folders of random weights; see t5_folders."""

import dataclasses
import json
import pathlib
from typing import Any

import numpy as np
from t5_folders import Noise, T5Folder, digest, save_tensors, write_json

PROMPTS = {"query": "ask: ", "document": "read: "}
# Names of both generations. Recent versions moved the modules and read either.
_TYPES = {
    "legacy": {
        "Transformer": "sentence_transformers.models.Transformer",
        "Pooling": "sentence_transformers.models.Pooling",
        "Dense": "sentence_transformers.models.Dense",
        "Normalize": "sentence_transformers.models.Normalize",
        "Router": "sentence_transformers.models.Router",
    },
    "current": {
        "Transformer": (
            "sentence_transformers.base.modules.transformer.Transformer"
        ),
        "Pooling": (
            "sentence_transformers.sentence_transformer.modules.pooling.Pooling"
        ),
        "Dense": "sentence_transformers.base.modules.dense.Dense",
        "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
        "Router": "sentence_transformers.base.modules.router.Router",
    },
}
_IDENTITY = "torch.nn.modules.linear.Identity"
TANH = "torch.nn.modules.activation.Tanh"


@dataclasses.dataclass(frozen=True, kw_only=True)
class SentenceTransformersFolder:
    """A sentence-transformers folder around random T5 weights.

    Attributes:
        encoder: `T5Folder`. Defaults to its defaults.
        dense: `None` for no Dense module, `"bare"` for one without bias,
            `"bias"` for one with a bias. Defaults to `None`.
        dense_dim: int. Defaults to 12.
        activation: str. Of the Dense module. Defaults to the identity.
        normalize: bool. Adds the Normalize module. Defaults to `True`.
        prompts: dict of `"query"` and `"document"`, or `None`.
        max_seq_length: int. Tokens of a text. Defaults to 512.
        generation: `"legacy"` or `"current"`: type strings, keys of the
            pooling and the place of the length. Defaults to `"legacy"`.
        document_seed: int or `None`. Makes a Router of two towers; of the
            document tower's encoder, and Dense. Defaults to `None`.
        shared_dense: bool. Puts the query tower's Dense module behind the
            Router, for both towers. Defaults to `False`.
    """

    encoder: T5Folder = T5Folder()
    dense: str | None = None
    dense_dim: int = 12
    activation: str = _IDENTITY
    normalize: bool = True
    prompts: dict[str, str] | None = None
    max_seq_length: int = 512
    generation: str = "legacy"
    document_seed: int | None = None
    shared_dense: bool = False

    @property
    def dim(self) -> int:
        """Width of the embeddings."""
        return self.dense_dim if self.dense else self.encoder.hidden

    def write(self, directory: pathlib.Path) -> str:
        """Writes the folder and returns the SHA-256 of all its weights."""
        directory.mkdir(parents=True)
        written: dict[str, np.ndarray] = {}
        if self.document_seed is None:
            modules = self._write_tower(directory, "", self.encoder, written)
        else:
            modules = [("Router", "")]
            self._write_router(directory, written)
            if self.shared_dense:
                modules.append(("Dense", "1_Dense"))
                written |= self._write_dense(
                    directory / "1_Dense", self.encoder
                )
        if self.normalize:
            path = f"{len(modules)}_Normalize"
            (directory / path).mkdir()
            modules.append(("Normalize", path))
        write_json(
            directory / "modules.json",
            [
                {
                    "idx": i,
                    "name": str(i),
                    "path": path,
                    "type": self._type(kind),
                }
                for i, (kind, path) in enumerate(modules)
            ],
        )
        write_json(
            directory / "config_sentence_transformers.json",
            {
                "__version__": {"sentence_transformers": "5.0.0"},
                "default_prompt_name": None,
                "prompts": self.prompts or {},
                "similarity_fn_name": "cosine",
            },
        )
        return digest(written)

    def _write_router(self, directory, written) -> None:
        seeds = {"query": self.encoder.seed, "document": self.document_seed}
        types, structure = {}, {}
        for route, seed in seeds.items():
            encoder = dataclasses.replace(self.encoder, seed=seed)
            modules = self._write_tower(directory, route, encoder, written)
            structure[route] = [path for _, path in modules]
            types |= {path: self._type(kind) for kind, path in modules}
        write_json(
            directory / "router_config.json",
            {
                "types": types,
                "structure": structure,
                "parameters": {
                    "default_route": "document",
                    "allow_empty_key": True,
                },
            },
        )

    def _write_tower(
        self, directory, route, encoder, written
    ) -> list[tuple[str, str]]:
        """Writes encoder, pooling and Dense; returns kinds and paths."""
        start = f"{route}_" if route else ""
        first = f"{route}_0_Transformer" if route else ""
        folder = directory / first
        tensors = encoder.write(folder)
        self._write_length(folder)
        modules = [("Transformer", first), ("Pooling", f"{start}1_Pooling")]
        self._write_pooling(directory / modules[1][1])
        if self.dense and not self.shared_dense:
            modules.append(("Dense", f"{start}2_Dense"))
            tensors |= self._write_dense(directory / modules[2][1], encoder)
        written |= {f"{route}/{name}": value for name, value in tensors.items()}
        return modules

    def _write_length(self, folder: pathlib.Path) -> None:
        content: dict[str, Any] = {"transformer_task": "feature-extraction"}
        if self.generation == "legacy":
            content = {
                "max_seq_length": self.max_seq_length,
                "do_lower_case": False,
            }
        write_json(folder / "sentence_bert_config.json", content)
        if self.generation == "current":
            # What version 6 writes: the length is the tokenizer's alone.
            path = folder / "tokenizer_config.json"
            tokenizer = json.loads(path.read_text(encoding="utf-8"))
            tokenizer["model_max_length"] = self.max_seq_length
            write_json(path, tokenizer)

    def _write_pooling(self, folder: pathlib.Path) -> None:
        content: dict[str, Any] = {
            "embedding_dimension": self.encoder.hidden,
            "pooling_mode": "mean",
            "include_prompt": True,
        }
        if self.generation == "legacy":
            content = {
                "word_embedding_dimension": self.encoder.hidden,
                "pooling_mode_cls_token": False,
                "pooling_mode_mean_tokens": True,
                "pooling_mode_max_tokens": False,
                "pooling_mode_mean_sqrt_len_tokens": False,
            }
        folder.mkdir()
        write_json(folder / "config.json", content)

    def _write_dense(
        self, folder: pathlib.Path, encoder: T5Folder
    ) -> dict[str, np.ndarray]:
        noise = Noise(encoder.seed + 1000)
        shape = (self.dense_dim, encoder.hidden)
        kernel = noise.draw(shape) / np.sqrt(encoder.hidden)
        tensors = {"linear.weight": kernel.astype(np.float32)}
        if self.dense == "bias":
            bias = 0.3 * noise.draw(shape[:1])
            tensors["linear.bias"] = bias.astype(np.float32)
        folder.mkdir()
        write_json(
            folder / "config.json",
            {
                "in_features": encoder.hidden,
                "out_features": self.dense_dim,
                "bias": self.dense == "bias",
                "activation_function": self.activation,
            },
        )
        save_tensors(folder / "model.safetensors", tensors)
        return tensors

    def _type(self, kind: str) -> str:
        return _TYPES[self.generation][kind]
