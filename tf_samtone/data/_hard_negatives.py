"""Hard negatives as rows of a fixed width, with a mask."""

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import fingerprint

# A place without a negative holds the empty text, a lone </s>: towers need at
# least one token, and the mask keeps the embedding out of the loss.
_FILLER = ""


class HardNegatives:
    """The hard negatives of every pair, kept as numbers of texts.

    Args:
        hard_negatives: one list of strings per pair; lists may differ in
            length or be empty.
        num_pairs: int.

    Attributes:
        texts: list of all strings and a filler, to be tokenized.
        width: int, the most negatives that a pair has.

    Raises:
        InvalidInputError: if there is not one list of strings per pair, or
            all lists are empty.
    """

    def __init__(
        self, hard_negatives: Sequence[Sequence[str]], num_pairs: int
    ) -> None:
        _check_lists(hard_negatives, num_pairs)
        counts = np.array([len(texts) for texts in hard_negatives])
        self.width = int(counts.max())
        self.texts = [text for texts in hard_negatives for text in texts]
        name = "hard_negatives (all lists joined)"
        flat_ids = fingerprint(self.texts, name=name)
        is_there = np.arange(self.width) < counts[:, np.newaxis]
        numbers = np.full(is_there.shape, len(self.texts), np.int64)
        numbers[is_there] = np.arange(len(self.texts))
        ids = np.zeros(is_there.shape, np.int64)
        ids[is_there] = flat_ids
        self.texts.append(_FILLER)
        with tf.device("CPU:0"):
            self._numbers = tf.constant(numbers)
            self._mask = tf.constant(is_there.astype(np.int32))
            self._ids = tf.constant(ids)

    def numbers(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns the positions in `texts` for some pairs.

        Args:
            rows: int64 `[batch]`.

        Returns:
            int64 `[batch * width]`.
        """
        return tf.reshape(tf.gather(self._numbers, rows), [-1])

    def identities(self, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the mask and the fingerprints for some pairs.

        Args:
            rows: int64 `[batch]`.

        Returns:
            dict of `"hard_negative_mask"`, int32, and `"hard_negative_ids"`,
            int64, `[batch, width]`; both are 0 where there is no negative.
        """
        return {
            "hard_negative_mask": tf.gather(self._mask, rows),
            "hard_negative_ids": tf.gather(self._ids, rows),
        }


def _check_lists(hard_negatives: object, num_pairs: int) -> None:
    expected = "Expected `hard_negatives` to hold one list of strings per pair"
    if not isinstance(hard_negatives, list | tuple):
        raise InvalidInputError(
            f"{expected}. Received: {type(hard_negatives).__name__}. Pass a "
            "list of lists; an empty list for a pair without any."
        )
    if len(hard_negatives) != num_pairs:
        raise InvalidInputError(
            f"{expected}. Received: {len(hard_negatives)} lists, {num_pairs} "
            "pairs. Pass an empty list for a pair without any."
        )
    for row, texts in enumerate(hard_negatives):
        if not isinstance(texts, list | tuple):
            raise InvalidInputError(
                f"{expected}. Received: hard_negatives[{row}] of type "
                f"{type(texts).__name__}. Wrap a single text in a list."
            )
    if not any(hard_negatives):
        raise InvalidInputError(
            f"{expected}, at least one of them not empty. Received: "
            f"{num_pairs} empty lists. Pass hard_negatives=None."
        )
