"""Checks of what a caller hands to an index, before any work is done."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_samtone.errors import InvalidInputError

__all__ = [
    "check_document_embeddings",
    "check_ids",
    "check_k",
    "check_positive",
    "check_query_embeddings",
    "check_texts",
]

# Inner products of larger numbers can overflow float32.
_LARGEST = 1e16


def check_ids(ids: Sequence[str], count: int) -> list[str]:
    """Return the ids as a list of `count` distinct, non-empty `str`."""
    if isinstance(ids, str):
        raise InvalidInputError(
            "Expected `ids` to be a sequence of str. Received: one str "
            f"ids={ids!r}. Pass a list."
        )
    result: list[str] = []
    seen: set[str] = set()
    for position, identifier in enumerate(ids):
        if not isinstance(identifier, str) or not identifier:
            raise InvalidInputError(
                "Expected every id to be a non-empty str. Received: "
                f"ids[{position}]={identifier!r}. Convert ids with str()."
            )
        if identifier in seen:
            raise InvalidInputError(
                f"Expected distinct ids. Received: {identifier!r} again at "
                f"ids[{position}]. Remove the duplicate."
            )
        seen.add(identifier)
        result.append(str(identifier))
    if len(result) != count:
        raise InvalidInputError(
            f"Expected one id per document. Received: {len(result)} ids for "
            f"{count} documents. Pass both in the same order."
        )
    return result


def check_texts(name: str, texts: Sequence[str]) -> list[str]:
    """Return the texts as a list of `str`."""
    if isinstance(texts, str):
        raise InvalidInputError(
            f"Expected `{name}` to be a sequence of str. Received: one str "
            f"{name}={texts!r}. Pass [text] to use a single text."
        )
    result = list(texts)
    for position, text in enumerate(result):
        if not isinstance(text, str):
            raise InvalidInputError(
                f"Expected `{name}` to hold str. Received: "
                f"{name}[{position}] of type {type(text).__name__}. Decode "
                "bytes first."
            )
    return result


def check_document_embeddings(embeddings: Any) -> np.ndarray:
    """Return float32 `[num_docs, dim]`, finite and with non-zero rows."""
    result = _as_float32_matrix("embeddings", embeddings)
    if result.size == 0:
        raise InvalidInputError(
            "Expected at least one document and one dimension. Received: "
            f"embeddings of shape {result.shape}. Encode the corpus first."
        )
    _refuse_non_finite("embeddings", result)
    zero_rows = np.flatnonzero(~result.any(axis=1))
    if zero_rows.size:
        raise InvalidInputError(
            "Expected document embeddings with a non-zero norm. Received: "
            f"{zero_rows.size} rows of zeros, the first at embeddings"
            f"[{zero_rows[0]}]. Check the encoder; a zero vector has no "
            "direction to compare."
        )
    return result


def check_query_embeddings(queries: Any, dim: int) -> np.ndarray:
    """Return float32 `[num_queries, dim]`, finite; zero rows are allowed."""
    result = _as_float32_matrix("queries", queries)
    if result.shape[1] != dim:
        raise InvalidInputError(
            f"Expected queries of dim={dim}, as the index. Received: "
            f"queries of shape {result.shape}. Encode them with the model "
            "that made the index."
        )
    _refuse_non_finite("queries", result)
    return result


def check_k(k: int, num_docs: int) -> int:
    """Return `k` if the index can give that many results per query."""
    check_positive("k", k)
    if k > num_docs:
        raise InvalidInputError(
            f"Expected k to be at most the {num_docs} documents of the "
            f"index. Received: k={k}. Pass k=min(k, len(index))."
        )
    return int(k)


def check_positive(name: str, value: int) -> int:
    """Return `value` if it is an integer of at least 1."""
    if (
        isinstance(value, bool | np.bool_)
        or not isinstance(value, int | np.integer)
        or value < 1
    ):
        raise InvalidInputError(
            f"Expected `{name}` to be an integer of at least 1. Received: "
            f"{name}={value!r}. Pass a positive int."
        )
    return int(value)


def _as_float32_matrix(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    # ml_dtypes.bfloat16 is no subtype of np.floating.
    is_float = np.issubdtype(array.dtype, np.floating)
    if not is_float and array.dtype.name != "bfloat16":
        raise InvalidInputError(
            f"Expected `{name}` to be floating point. Received: "
            f"{name}.dtype={array.dtype}. Pass the encoder's output."
        )
    if array.ndim != 2:
        raise InvalidInputError(
            f"Expected `{name}` of shape [n, dim]. Received: {name}.shape="
            f"{array.shape}. Use {name}[np.newaxis] for one vector."
        )
    # A float64 beyond float32 becomes inf, which the next check reports.
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def _refuse_non_finite(name: str, array: np.ndarray) -> None:
    # Row by row, because a copy of a large corpus may not fit in memory.
    with np.errstate(invalid="ignore"):
        largest = np.maximum(array.max(axis=1), -array.min(axis=1))
    # Comparisons with NaN are false, so this finds NaN and Inf as well.
    bad_rows = np.flatnonzero(~(largest <= _LARGEST))
    if bad_rows.size:
        raise InvalidInputError(
            f"Expected `{name}` without NaN or Inf and not beyond "
            f"{_LARGEST:g}. Received: {bad_rows.size} bad rows, the first "
            f"at {name}[{bad_rows[0]}]. Check the encoder."
        )
