"""Checks and conversions shared by everything that accepts texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_samtone.errors import InvalidInputError


def check_texts(texts: Sequence[str | bytes], name: str = "texts") -> None:
    """Refuses anything but a sequence of `str` or `bytes`.

    Args:
        texts: what the caller passed.
        name: argument name for the message.

    Raises:
        InvalidInputError: the message names the first row that is no text.
    """
    is_sequence = isinstance(texts, list | tuple) or (
        isinstance(texts, np.ndarray) and texts.ndim == 1
    )
    if not is_sequence:
        raise InvalidInputError(
            f"Expected `{name}` to be a list of strings. "
            f"Received: {name}={_shortened(texts)} "
            f"({type(texts).__name__}). Wrap a single text in a list."
        )
    for row, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            raise InvalidInputError(
                f"Expected every row of `{name}` to be a string. "
                f"Received: {name}[{row}]={_shortened(text)} "
                f"({type(text).__name__}). Replace or drop row {row}; an "
                "empty string is allowed."
            )


def to_bytes(text: str | bytes) -> bytes:
    """Encodes a text as UTF-8, lone surrogates included.

    A lone surrogate becomes three bytes of invalid UTF-8, which is what the
    tokenizing graph knows how to replace.
    """
    return text if isinstance(text, bytes) else _encoded(text)


def to_string_tensor(texts: tf.Tensor | Sequence[str | bytes]) -> tf.Tensor:
    """Turns texts into a string tensor of shape `[batch]`.

    Args:
        texts: string tensor `[batch]`, or a list of `str` or `bytes`.

    Returns:
        string `[batch]`.

    Raises:
        InvalidInputError: for any other value, dtype or rank.
    """
    if not tf.is_tensor(texts):
        check_texts(texts)
        return tf.constant(
            [to_bytes(text) for text in texts],
            dtype=tf.string,
            shape=[len(texts)],
        )
    tensor: Any = texts
    if tensor.dtype != tf.string or tensor.shape.rank not in (None, 1):
        raise InvalidInputError(
            "Expected `texts` to be a string tensor of shape [batch]. "
            f"Received: dtype={tensor.dtype.name}, shape={tensor.shape}. Batch "
            "the dataset before mapping the preprocessor over it."
        )
    return tf.ensure_shape(tensor, [None])


def _encoded(text: str) -> bytes:
    return str(text).encode("utf-8", errors="surrogatepass")


def _shortened(value: object, width: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= width else text[: width - 3] + "..."
