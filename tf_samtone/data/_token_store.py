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
    token plus 8 per row; nothing is padded until a batch is cut.

    Args:
        preprocessor: `TextPreprocessor` that tokenizes and pads.
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
        self._preprocessor = preprocessor
        _logger.info(
            "tokenized %d %s (%d distinct): %d tokens, %d fill all %d places",
            len(texts),
            name,
            len(distinct),
            lengths.sum(),
            np.count_nonzero(lengths == preprocessor.sequence_length),
            preprocessor.sequence_length,
        )

    def gather(self, rows: tf.Tensor) -> dict[str, tf.Tensor]:
        """Returns the padded features of some rows.

        Args:
            rows: int64 `[batch]`.

        Returns:
            dict with `"token_ids"` and `"padding_mask"`, int32
            `[batch, sequence_length]`.
        """
        tokens = tf.gather(self._tokens, tf.gather(self._place_of_row, rows))
        features = self._preprocessor.pack(tokens)
        shape = [rows.shape[0], self._preprocessor.sequence_length]
        return {
            name: tf.ensure_shape(feature, shape)
            for name, feature in features.items()
        }
