"""Texts kept as one flat row of token ids."""

import logging
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from tf_samtone.text import TextPreprocessor

_logger = logging.getLogger("tf_samtone")

_TEXTS_PER_CALL = 4096


class TokenStore:
    """The tokens of many texts, tokenized once, gathered per batch.

    Equal texts are tokenized and stored once. Memory is 4 bytes per kept
    token plus 8 per row; nothing is padded until a batch is laid out.

    Args:
        preprocessor: `TextPreprocessor` that tokenizes and truncates.
        texts: list of strings, at least one.
        name: what the texts are, for the log.
    """

    def __init__(
        self,
        preprocessor: TextPreprocessor,
        texts: Sequence[str],
        name: str,
    ) -> None:
        places: dict[str, int] = {}
        place_of_row = [places.setdefault(text, len(places)) for text in texts]
        distinct = list(places)
        parts = [
            preprocessor.tokenize(distinct[start : start + _TEXTS_PER_CALL])
            for start in range(0, len(distinct), _TEXTS_PER_CALL)
        ]
        lengths = np.concatenate([part.row_lengths() for part in parts])
        flat = np.concatenate([part.flat_values for part in parts])
        # tf.data reads its captures on the host; a copy on a GPU would be
        # fetched for every batch.
        with tf.device("CPU:0"):
            self._place_of_row = tf.constant(place_of_row, tf.int64)
            self._tokens = tf.RaggedTensor.from_row_lengths(
                tf.constant(flat), tf.constant(lengths)
            )
        _logger.info(
            "tokenized %d %s (%d distinct): %d tokens, %d fill all %d places",
            len(texts),
            name,
            len(distinct),
            lengths.sum(),
            np.count_nonzero(lengths == preprocessor.sequence_length),
            preprocessor.sequence_length,
        )

    def lengths(self, rows: tf.Tensor) -> tf.Tensor:
        """Returns how many tokens some rows have.

        Args:
            rows: int64 `[batch]`.

        Returns:
            int64 `[batch]`.
        """
        places = tf.gather(self._place_of_row, rows)
        splits = self._tokens.row_splits
        return tf.gather(splits, places + 1) - tf.gather(splits, places)

    def gather(self, rows: tf.Tensor) -> tf.RaggedTensor:
        """Returns the tokens of some rows.

        Args:
            rows: int64 `[batch]`.

        Returns:
            int32 ragged `[batch, 1 <= length <= sequence_length]`.
        """
        tokens = tf.gather(self._tokens, tf.gather(self._place_of_row, rows))
        if rows.shape[0] is None:
            return tokens
        # Gathering loses a number of rows known in advance, which TPUs want.
        splits = tf.ensure_shape(tokens.row_splits, [rows.shape[0] + 1])
        return tf.RaggedTensor.from_row_splits(
            tokens.flat_values, splits, validate=False
        )
