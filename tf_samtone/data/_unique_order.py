"""An order in which no batch holds a text twice."""

import logging

import numpy as np
import tensorflow as tf

from tf_samtone.data._epoch_order import EpochOrder
from tf_samtone.data._unique_batches import UniqueBatches

_logger = logging.getLogger("tf_samtone")


class UniqueOrder:
    """Changes the batches of an `EpochOrder` so that all texts differ.

    Moving a row depends on where all the others are, step by step, which as
    a graph would be thousands of tiny ops; so each epoch is cut by one call
    of a NumPy function. It is a pure function of the epoch's order.

    Args:
        base: `EpochOrder` of the same pairs.
        query_ids: int64 `[pairs]`.
        document_ids: int64 `[pairs]`.
        batch_size: int.
        pad_last: bool. Whether pairs that no full batch could take make one
            more batch, filled up.

    Raises:
        InvalidInputError: if not even one such batch can be promised.
    """

    def __init__(
        self,
        base: EpochOrder,
        query_ids: np.ndarray,
        document_ids: np.ndarray,
        batch_size: int,
        *,
        pad_last: bool,
    ) -> None:
        self._base = base
        self._unique = UniqueBatches(query_ids, document_ids, batch_size)
        self._batch_size = batch_size
        left_out = len(query_ids) - self._unique.num_batches * batch_size
        self._pads = pad_last and left_out > 0
        _logger.info(
            "unique_texts: %d full batches of %d per epoch; %d of %d pairs "
            "%s, others every epoch",
            self._unique.num_batches,
            batch_size,
            left_out,
            len(query_ids),
            "fill a last batch or are left out"
            if self._pads
            else "are left out",
        )

    @property
    def batches_per_epoch(self) -> int:
        """Batches in one epoch, the same in every epoch."""
        return self._unique.num_batches + int(self._pads)

    def batches(self, epoch: tf.Tensor) -> tf.Tensor:
        """Returns the batches of one epoch.

        Args:
            epoch: int64 scalar, from 0.

        Returns:
            int64 `[batches_per_epoch, batch_size]` row numbers as those of
            `EpochOrder.batches`.
        """
        cut = tf.numpy_function(
            self._cut, [self._base.rows(epoch)], tf.int64, stateful=False
        )
        cut = tf.ensure_shape(cut, [self.batches_per_epoch, self._batch_size])
        full = self._base.in_time(cut[: self._unique.num_batches], epoch)
        return tf.concat([full, cut[self._unique.num_batches :]], axis=0)

    def _cut(self, order: np.ndarray) -> np.ndarray:
        full, left_out = self._unique.cut(order)
        if not self._pads:
            return full
        last = self._unique.without_copies(left_out)[: self._batch_size]
        fill = ~order[: self._batch_size - len(last)]
        return np.concatenate([full, [np.concatenate([last, fill])]])
