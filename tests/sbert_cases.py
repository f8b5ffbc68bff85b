"""The sentence-transformers folders that parity is shown on."""

import json
import pathlib

import numpy as np
from sbert_folders import PROMPTS, TANH, SentenceTransformersFolder
from t5_folders import T5Folder

GOLDENS = pathlib.Path(__file__).parent / "data_files" / "sbert_goldens"


def _cases() -> dict[str, SentenceTransformersFolder]:
    """Every feed-forward kind, depth and Dense module, and each option."""
    cases = {}
    for gated in (False, True):
        for layers in (1, 2, 3):
            encoder = T5Folder(gated=gated, layers=layers, seed=layers)
            for dense in (None, "bare", "bias"):
                kind = "gated" if gated else "relu"
                cases[f"{kind}_{layers}_{dense or 'none'}"] = (
                    SentenceTransformersFolder(encoder=encoder, dense=dense)
                )
    half = T5Folder(gated=True, dtype="float16", shards=3, seed=4)
    brain = T5Folder(dtype="bfloat16", decoder=True, seed=5)
    options = {
        "unnormalized": {"dense": "bare", "normalize": False},
        "unnormalized_bare": {"normalize": False},
        "tanh": {"dense": "bias", "activation": TANH},
        "prompts": {"dense": "bare", "prompts": PROMPTS},
        "short": {"max_seq_length": 64, "prompts": PROMPTS},
        "float16_shards": {"encoder": half, "dense": "bare"},
        "bfloat16_decoder": {"encoder": brain},
        "router": {"document_seed": 7},
        "router_dense": {"document_seed": 7, "dense": "bias"},
        "router_shared_dense": {
            "document_seed": 7,
            "dense": "bare",
            "shared_dense": True,
        },
    }
    for name, chosen in options.items():
        cases[name] = SentenceTransformersFolder(**chosen)
    for name in ("unnormalized", "prompts", "short", "router_dense"):
        cases[f"{name}_current"] = SentenceTransformersFolder(
            **options[name], generation="current"
        )
    return cases


CASES = _cases()


def has_two_sides(case: SentenceTransformersFolder) -> bool:
    """Whether queries and documents get different embeddings."""
    return bool(case.prompts) or case.document_seed is not None


def read_texts() -> list[str]:
    """Returns texts of 1, 2, 3, 17, 64, 129, 300, 511, 512 and 600 tokens."""
    return read_index()["texts"]


def read_index() -> dict:
    """Returns texts, their lengths and the SHA-256 of each folder's weights."""
    return json.loads((GOLDENS / "index.json").read_text(encoding="utf-8"))


def read_golden(name: str) -> dict[str, np.ndarray]:
    """Returns `query` and `document`, float32 `[num_texts, dim]`."""
    with np.load(GOLDENS / "embeddings.npz", allow_pickle=False) as golden:
        if name in golden:
            return dict.fromkeys(("query", "document"), golden[name])
        return {
            side: golden[f"{name}.{side}"] for side in ("query", "document")
        }
