"""Which order the pairs of an epoch take, by the options chosen."""

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
import tensorflow as tf

from tf_samtone.data._epoch_order import EpochOrder
from tf_samtone.data._unique_order import UniqueOrder


class PairOrder(Protocol):
    """Cuts epochs into batches as a pure function of the epoch."""

    @property
    def batches_per_epoch(self) -> int: ...

    def batches(self, epoch: tf.Tensor) -> tf.Tensor: ...


def pair_order(
    num_pairs: int,
    batch_size: int,
    *,
    seed: int,
    shuffle: bool,
    group_ids: Sequence[Hashable] | None,
    last_batch: str,
    unique_ids: tuple[np.ndarray, np.ndarray] | None,
) -> PairOrder:
    """Makes the order of a training dataset; see `training_dataset`.

    Args:
        num_pairs: int.
        batch_size: int.
        seed: int.
        shuffle: bool.
        group_ids: one hashable per pair, or `None`.
        last_batch: `"drop"` or `"pad"`.
        unique_ids: the fingerprints of queries and of documents, int64
            `[num_pairs]` each, to keep copies out of a batch; or `None`.

    Raises:
        InvalidInputError: if a group id cannot be hashed, or batches without
            repeated texts cannot be made.
    """
    pads = last_batch == "pad"
    order = EpochOrder(
        num_pairs,
        batch_size,
        seed=seed,
        shuffle=shuffle,
        group_ids=group_ids,
        pad_last=pads,
    )
    if unique_ids is None:
        return order
    return UniqueOrder(order, *unique_ids, batch_size, pad_last=pads)
