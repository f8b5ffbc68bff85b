"""Which pairs a training step holds, without building its batch."""

from collections.abc import Hashable, Sequence

import numpy as np
import tensorflow as tf

from tf_samtone.data._checks import check_int, check_order
from tf_samtone.data._pair_order import pair_order
from tf_samtone.errors import InvalidInputError


def batch_rows(
    num_pairs: int,
    batch_size: int,
    step: int,
    *,
    seed: int = 0,
    shuffle: bool = True,
    group_ids: Sequence[Hashable] | None = None,
    last_batch: str = "drop",
    unique_ids: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """Returns the pairs in one batch of `training_dataset`.

    For error reports and tests: no text is needed. Costs one epoch's order.
    (With several packing groups the batch holds the same pairs in another
    order.)

    >>> batch_rows(10, 4, step=1, shuffle=False).tolist()
    [4, 5, 6, 7]

    Args:
        num_pairs: int, pairs of the dataset.
        batch_size: int, as given to `training_dataset`.
        step: int, from 0; counts the batches of all epochs.
        seed: int, as given. Defaults to `0`.
        shuffle: bool, as given. Defaults to `True`.
        group_ids: as given. Defaults to `None`.
        last_batch: as given. The rows that pad a batch are not returned.
            Defaults to `"drop"`.
        unique_ids: for `unique_texts=True`, the int64 `[num_pairs]`
            fingerprints of all queries and of all documents
            (`tf_samtone.text.fingerprint`). Defaults to `None`.

    Returns:
        int64 `[batch_size]` row numbers (fewer in a padded batch).

    Raises:
        InvalidInputError: as `training_dataset` does.
    """
    check_int("step", step, 0)
    check_order(num_pairs, batch_size, group_ids, last_batch)
    for ids in unique_ids or ():
        if len(ids) != num_pairs:
            raise InvalidInputError(
                "Expected `unique_ids` to hold one fingerprint per pair. "
                f"Received: {len(ids)} fingerprints, num_pairs={num_pairs}. "
                "Pass those of all queries and those of all documents."
            )
    order = pair_order(
        num_pairs,
        batch_size,
        seed=seed,
        shuffle=shuffle,
        group_ids=group_ids,
        last_batch=last_batch,
        unique_ids=unique_ids,
    )
    epoch, place = divmod(step, order.batches_per_epoch)
    with tf.device("CPU:0"):
        rows = order.batches(tf.constant(epoch, tf.int64))[place].numpy()
    return rows[rows >= 0]
