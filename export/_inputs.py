"""What the command lines read: models, corpora, indexes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tf_samtone._files import manifest_kind
from tf_samtone.errors import InvalidInputError
from tf_samtone.retrieval import (
    BM25Index,
    ExactIndex,
    ScannIndex,
    load_index,
)

if TYPE_CHECKING:
    from tf_samtone.models import DualEncoder

Index = BM25Index | ExactIndex | ScannIndex
# Texts of queries and k to (scores, ids), best first.
Search = Callable[[Sequence[str], int], tuple[np.ndarray, np.ndarray]]


def read_model(path: str | None) -> "DualEncoder":
    """Reads the model that `--model` names.

    Args:
        path: str. Folder that `DualEncoder.from_preset` reads.

    Raises:
        InvalidInputError: if no folder is given or it is not there.
    """
    if not path or not Path(path).is_dir():
        raise InvalidInputError(
            "Expected --model to be a folder written by save_to_preset, "
            "samtone-train or samtone-export, or of sentence-transformers. "
            f"Received: --model={path or ''}. Pass the folder."
        )
    from tf_samtone.models import DualEncoder

    return DualEncoder.from_preset(path)


def read_corpus(path: str) -> dict[str, str]:
    """Reads document id → text from the place that `--corpus` names.

    Args:
        path: str. A BEIR folder, or its `corpus.jsonl` alone.

    Raises:
        DataError: names the file and line that cannot be used.
    """
    from tf_samtone.data._json_texts import read_documents

    place = Path(path)
    return read_documents(place / "corpus.jsonl" if place.is_dir() else place)


def open_index(index_path: str, model_path: str | None) -> tuple[Index, Search]:
    """Loads an index together with the way to search it with texts.

    Args:
        index_path: str. Folder written by `samtone-index` or `save`.
        model_path: str. Folder of the model that made the index; an index of
            words (`--kind=bm25`) needs none.

    Returns:
        `(index, search)`.

    Raises:
        InvalidInputError: if the index needs a model and none is given.
        MismatchError: if the index was made by another model.
    """
    if manifest_kind(index_path) == BM25Index.kind:
        words = BM25Index.load(index_path)
        return words, words.search
    model = read_model(model_path)
    index = load_index(index_path, model_fingerprint=model.fingerprint())
    return index, dense_search(model, index)


def dense_search(model: "DualEncoder", index: Index) -> Search:
    """Joins the query tower and an index of embeddings."""

    def search(queries: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        return index.search(model.encode_queries(list(queries)), k)

    return search
