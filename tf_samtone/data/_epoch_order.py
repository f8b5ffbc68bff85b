"""The order of training examples, as a function of seed and epoch."""

from collections.abc import Hashable, Sequence

import tensorflow as tf

from tf_samtone.errors import InvalidInputError


class EpochOrder:
    """Cuts every epoch into batches of row numbers, without any state.

    Args:
        num_rows: int, examples per epoch.
        batch_size: int, at most `num_rows`.
        seed: int, any 64-bit value.
        shuffle: bool. `False` keeps the order of the rows (or, with groups,
            of the first appearance of each group) in every epoch.
        group_ids: one hashable per row, or `None` for no groups.
        pad_last: bool. Whether a short last batch is kept and filled up.

    Raises:
        InvalidInputError: if a group id cannot be hashed.
    """

    def __init__(
        self,
        num_rows: int,
        batch_size: int,
        *,
        seed: int,
        shuffle: bool,
        group_ids: Sequence[Hashable] | None,
        pad_last: bool,
    ) -> None:
        self._num_rows = num_rows
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._pad_last = pad_last
        self._seed = (seed & 0x7FFFFFFF, (seed >> 31) & 0x7FFFFFFF)
        self._groups: tf.Tensor | None = None
        if group_ids is not None:
            numbers = _numbered(group_ids)
            self._num_groups = max(numbers) + 1
            with tf.device("CPU:0"):
                self._groups = tf.constant(numbers, tf.int64)

    @property
    def batches_per_epoch(self) -> int:
        """Batches in one epoch; without padding, full ones only."""
        full, rest = divmod(self._num_rows, self._batch_size)
        return full + (1 if rest and self._pad_last else 0)

    def batches(self, epoch: tf.Tensor) -> tf.Tensor:
        """Returns the batches of one epoch.

        Args:
            epoch: int64 scalar, from 0.

        Returns:
            int64 `[batches_per_epoch, batch_size]` row numbers, no row twice.
            With `pad_last`, the empty places of a short last batch hold
            `~row` (a negative number) of rows from the start of the epoch.
        """
        count, rest = divmod(self._num_rows, self._batch_size)
        order = self.rows(epoch)
        full = order[: count * self._batch_size]
        batches = self.in_time(
            tf.reshape(full, [count, self._batch_size]), epoch
        )
        if not rest or not self._pad_last:
            return batches
        fill = ~order[: self._batch_size - rest]
        last = tf.concat([order[count * self._batch_size :], fill], axis=0)
        return tf.concat([batches, last[tf.newaxis]], axis=0)

    def rows(self, epoch: tf.Tensor) -> tf.Tensor:
        """Returns all rows of one epoch, groups side by side.

        Args:
            epoch: int64 scalar, from 0.

        Returns:
            int64 `[num_rows]`, a permutation.
        """
        ranks = self._permutation(self._num_rows, epoch, stream=0)
        if self._groups is None:
            return ranks
        group_ranks = self._permutation(self._num_groups, epoch, stream=1)
        first_key = tf.gather(group_ranks, self._groups)
        order = tf.argsort(first_key * self._num_rows + ranks)
        return tf.cast(order, tf.int64)

    def in_time(self, batches: tf.Tensor, epoch: tf.Tensor) -> tf.Tensor:
        """Shuffles the batches of one epoch where their rows are grouped.

        The layout puts groups side by side; neighbours in time need not be.

        Args:
            batches: int64 `[count, batch_size]`, `count` known in advance.
            epoch: int64 scalar, from 0.

        Returns:
            int64 `[count, batch_size]`.
        """
        if self._groups is None or not self._shuffle:
            return batches
        count = batches.shape[0]
        return tf.gather(batches, self._permutation(count, epoch, stream=2))

    def _permutation(
        self, size: int, epoch: tf.Tensor, *, stream: int
    ) -> tf.Tensor:
        """Permutes `range(size)`; each stream is independent."""
        positions = tf.range(size, dtype=tf.int64)
        if not self._shuffle:
            return positions
        seed = tf.constant(self._seed, tf.int32)
        for data in (tf.cast(epoch, tf.int64), tf.constant(stream, tf.int64)):
            seed = tf.random.experimental.stateless_fold_in(seed, data)
        return tf.random.experimental.index_shuffle(
            positions, seed, tf.constant(size - 1, tf.int64)
        )


def _numbered(group_ids: Sequence[Hashable]) -> list[int]:
    """Numbers the groups from 0 in the order of first appearance."""
    numbers: dict[Hashable, int] = {}
    try:
        return [numbers.setdefault(group, len(numbers)) for group in group_ids]
    except TypeError as error:
        raise InvalidInputError(
            "Expected `group_ids` to be hashable, e.g. strings. Received: "
            f"{error}. Convert each of them, e.g. a list to a tuple."
        ) from error
