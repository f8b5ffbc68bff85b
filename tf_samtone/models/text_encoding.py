"""Encoding of many texts with little padding."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import tensorflow as tf
import tqdm

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import TextPreprocessor, pack_rows
from tf_samtone.text._inputs import check_texts

__all__ = ["encode_texts", "texts_of_dataset"]

_TEXTS_PER_TOKENIZATION = 4096
# Few distinct lengths keep the number of traced shapes small.
_LENGTH_STEP = 8
# As do few distinct numbers of packed rows.
_ROW_STEP = 4
PACKINGS = (None, "rows")


def encode_texts(
    tower: Callable[..., tf.Tensor],
    preprocessor: TextPreprocessor,
    texts: Sequence[str],
    *,
    dim: int,
    packing: str | None = None,
    tokens_per_batch: int = 8192,
    show_progress: bool = False,
    description: str = "encode",
) -> np.ndarray:
    """Encodes many texts with little padding, in their order.

    Args:
        tower: callable from `{"token_ids", "padding_mask"}`, int32
            `[batch, seq]`, or packed features (see `Tower`), to float32
            `[batch, dim]`.
        preprocessor: gives the token ids, cut to its `sequence_length`.
        texts: strings; an empty string is allowed.
        dim: int. Width of the embeddings.
        packing: str or `None`. `None` cuts batches of texts of similar
            length; `"rows"` puts several texts in one row of the
            preprocessor's length, so that nearly all batches have one shape.
            Defaults to `None`.
        tokens_per_batch: int. Upper bound of rows times padded length.
            Defaults to `8192`.
        show_progress: bool. Shows a bar of encoded texts. Defaults to `False`.
        description: str. Label of the bar.

    Returns:
        float32 `[len(texts), dim]`, row i of text i.

    Raises:
        InvalidInputError: if a row is not a string; the message names it.
    """
    if packing not in PACKINGS:
        raise InvalidInputError(
            f"Expected `packing` to be one of {PACKINGS}. Received: "
            f"packing={packing!r}."
        )
    check_texts(texts)
    rows = _token_rows(preprocessor, texts)
    if packing is None:
        batches = _padded_batches(rows, tokens_per_batch)
    else:
        row_length = preprocessor.sequence_length
        batches = _packed_batches(rows, tokens_per_batch, row_length)
    embeddings = np.empty((len(rows), dim), np.float32)
    progress = tqdm.tqdm(
        total=len(rows),
        desc=description,
        unit=" texts",
        disable=not show_progress,
        mininterval=1.0,
    )
    with progress:
        for batch, features in batches:
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


def _padded_batches(
    rows: list[np.ndarray], tokens_per_batch: int
) -> Iterator[tuple[np.ndarray, dict[str, tf.Tensor]]]:
    """Cuts the texts, longest first, into runs that fit the budget."""
    order = np.argsort([-len(row) for row in rows], kind="stable")
    start = 0
    while start < len(order):
        longest = _padded_length(len(rows[order[start]]))
        size = max(1, tokens_per_batch // longest)
        batch = order[start : start + size]
        yield batch, _padded([rows[i] for i in batch])
        start += size


def _packed_batches(
    rows: list[np.ndarray], tokens_per_batch: int, row_length: int
) -> Iterator[tuple[np.ndarray, dict[str, tf.Tensor]]]:
    """Cuts the texts, as they come, into runs that fit the budget.

    Not longest first: long texts leave room for nothing but short ones.
    """
    lengths = np.array([len(row) for row in rows], np.int64)
    ends = np.cumsum(lengths)
    start = 0
    while start < len(rows):
        used = ends[start] - lengths[start]
        end = int(np.searchsorted(ends, used + tokens_per_batch, "right"))
        end = max(end, start + 1)
        tokens = tf.RaggedTensor.from_row_lengths(
            np.concatenate(rows[start:end]), lengths[start:end]
        )
        yield (
            np.arange(start, end),
            pack_rows(tokens, row_length, row_multiple=_ROW_STEP),
        )
        start = end


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
