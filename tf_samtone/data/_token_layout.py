"""From the tokens of a batch to the features that a tower takes."""

import dataclasses
from collections.abc import Sequence
from typing import Protocol

import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import TextPreprocessor, pack_rows

Features = dict[str, tf.Tensor]


class TokenLayout(Protocol):
    """Lays ragged tokens out as dense features.

    Call arguments:
        tokens: int32 ragged `[examples, (length)]`.

    Returns:
        dict of int32 tensors.
    """

    def __call__(self, tokens: tf.RaggedTensor) -> Features: ...


@dataclasses.dataclass(frozen=True)
class PaddedLayout:
    """One row per example, padded to the preprocessor's length."""

    preprocessor: TextPreprocessor

    def __call__(self, tokens: tf.RaggedTensor) -> Features:
        shape = [tokens.shape[0], self.preprocessor.sequence_length]
        return {
            name: tf.ensure_shape(feature, shape)
            for name, feature in self.preprocessor.pack(tokens).items()
        }


class BucketLayout:
    """One row per example, padded to the smallest length that holds all.

    Args:
        preprocessor: `TextPreprocessor`; its length is the last bucket.
        lengths: ascending ints, the other lengths a batch may have.
        name: str, the argument's name for errors.

    Raises:
        InvalidInputError: if the lengths are not ascending positive ints or
            exceed the preprocessor's.
    """

    def __init__(
        self, preprocessor: TextPreprocessor, lengths: Sequence[int], name: str
    ) -> None:
        longest = preprocessor.sequence_length
        _check_buckets(lengths, longest, name)
        self._preprocessor = preprocessor
        self._lengths = sorted({*lengths, longest})

    def __call__(self, tokens: tf.RaggedTensor) -> Features:
        longest = tf.reduce_max(tokens.row_lengths())
        choices = tf.constant(self._lengths, tf.int64)
        length = tf.reduce_min(tf.boolean_mask(choices, choices >= longest))
        shape = [tokens.shape[0], None]
        return {
            name: tf.ensure_shape(feature[:, :length], shape)
            for name, feature in self._preprocessor.pack(tokens).items()
        }


@dataclasses.dataclass(frozen=True)
class RowLayout:
    """Several examples per row; see `pack_rows`.

    Attributes:
        name: str, what the examples are, for errors.
        row_length: int.
        groups: int.
        row_multiple: int.
        rows: int or `None`.
        pad_id: int.
    """

    name: str
    row_length: int
    groups: int
    row_multiple: int
    rows: int | None
    pad_id: int

    def __call__(self, tokens: tf.RaggedTensor) -> Features:
        return pack_rows(
            tokens,
            self.row_length,
            groups=self.groups,
            row_multiple=self.row_multiple,
            rows=self.rows,
            pad_id=self.pad_id,
            name=self.name,
        )


def _check_buckets(lengths: Sequence[int], longest: int, name: str) -> None:
    is_list = isinstance(lengths, list | tuple) and len(lengths) > 0
    if (
        not is_list
        or any(not isinstance(length, int) for length in lengths)
        or list(lengths) != sorted(set(lengths))
        or not 1 <= lengths[0] <= lengths[-1] <= longest
    ):
        raise InvalidInputError(
            f"Expected `{name}` to be ascending ints from 1 to {longest}, "
            "the length at which the preprocessor cuts. Received: "
            f"{name}={lengths!r}. Pass e.g. (16, 32, 64)."
        )
