"""Encoding of many texts with little padding."""

from collections.abc import Callable, Sequence

import numpy as np
import tensorflow as tf
import tqdm

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import TextPreprocessor
from tf_samtone.text._inputs import check_texts

__all__ = ["encode_texts", "texts_of_dataset"]

_TEXTS_PER_TOKENIZATION = 4096
# Few distinct lengths keep the number of traced shapes small.
_LENGTH_STEP = 8


def encode_texts(
    tower: Callable[..., tf.Tensor],
    preprocessor: TextPreprocessor,
    texts: Sequence[str],
    *,
    dim: int,
    tokens_per_batch: int = 8192,
    show_progress: bool = False,
    description: str = "encode",
) -> np.ndarray:
    """Encodes texts in batches of similar length and restores their order.

    Args:
        tower: callable from `{"token_ids", "padding_mask"}`, int32
            `[batch, seq]`, to float32 `[batch, dim]`.
        preprocessor: gives the token ids, cut to its `sequence_length`.
        texts: strings; an empty string is allowed.
        dim: int. Width of the embeddings.
        tokens_per_batch: int. Upper bound of rows times padded length.
            Defaults to `8192`.
        show_progress: bool. Shows a bar of encoded texts. Defaults to `False`.
        description: str. Label of the bar.

    Returns:
        float32 `[len(texts), dim]`, row i of text i.

    Raises:
        InvalidInputError: if a row is not a string; the message names it.
    """
    check_texts(texts)
    rows = _token_rows(preprocessor, texts)
    order = np.argsort([-len(row) for row in rows], kind="stable")
    embeddings = np.empty((len(rows), dim), np.float32)
    progress = tqdm.tqdm(
        total=len(rows),
        desc=description,
        unit=" texts",
        disable=not show_progress,
        mininterval=1.0,
    )
    with progress:
        for batch in _batches(order, rows, tokens_per_batch):
            features = _padded([rows[i] for i in batch])
            embeddings[batch] = tower(features)
            progress.update(len(batch))
    return embeddings


def texts_of_dataset(dataset: tf.data.Dataset) -> list[bytes]:
    """Reads a dataset of strings, scalar or batched, into a list.

    Args:
        dataset: `tf.data.Dataset` of string tensors, scalar or `[batch]`.

    Returns:
        list of bytes.

    Raises:
        InvalidInputError: if its elements are anything else.
    """
    spec = dataset.element_spec
    if not isinstance(spec, tf.TensorSpec) or spec.dtype != tf.string:
        raise InvalidInputError(
            "Expected a dataset of strings, scalar or [batch]. Received: "
            f"{spec}. Map it to its texts first."
        )
    # Without dtype=object NumPy would cut NUL bytes from the end of a scalar.
    return [
        text
        for element in dataset
        for text in np.asarray(element.numpy(), dtype=object).ravel()
    ]


def _token_rows(
    preprocessor: TextPreprocessor, texts: Sequence[str]
) -> list[np.ndarray]:
    rows: list[np.ndarray] = []
    for start in range(0, len(texts), _TEXTS_PER_TOKENIZATION):
        chunk = texts[start : start + _TEXTS_PER_TOKENIZATION]
        tokens = preprocessor.tokenize(chunk)
        splits = tokens.row_splits.numpy()[1:-1]
        rows.extend(np.split(tokens.flat_values.numpy(), splits))
    return rows


def _batches(order, rows, tokens_per_batch):
    """Cuts the order, longest first, into runs that fit the budget."""
    start = 0
    while start < len(order):
        longest = _padded_length(len(rows[order[start]]))
        size = max(1, tokens_per_batch // longest)
        yield order[start : start + size]
        start += size


def _padded_length(length: int) -> int:
    return -(-length // _LENGTH_STEP) * _LENGTH_STEP


def _padded(rows: list[np.ndarray]) -> dict[str, tf.Tensor]:
    length = _padded_length(max(len(row) for row in rows))
    token_ids = np.zeros((len(rows), length), np.int32)
    padding_mask = np.zeros((len(rows), length), np.int32)
    for i, row in enumerate(rows):
        token_ids[i, : len(row)] = row
        padding_mask[i, : len(row)] = 1
    return {
        "token_ids": tf.constant(token_ids),
        "padding_mask": tf.constant(padding_mask),
    }
