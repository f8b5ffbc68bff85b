"""One block of columns in the denominator of a contrastive softmax."""

import dataclasses
from collections.abc import Sequence

import tensorflow as tf

__all__ = ["Block"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Block:
    """Columns that may be negatives, and the rules that say which are.

    The rules are vectors, not a matrix, so that a mask exists for one tile of
    columns at a time.

    Attributes:
        columns: float `[num_columns, dim]`.
        row_index: int32 `[rows]`, the global index of each row's example.
        group_size: int. Column c belongs to example `c // group_size`: 1 for
            the other examples, k for k hard negatives per example.
        scope: str. `"others"` drops the columns of the row's own example,
            `"own"` keeps only them, `"all"` keeps both.
        row_ids: int64 vectors `[rows]`, one per kind of id.
        column_ids: int64 vectors `[num_columns]`; a column whose id of any kind
            equals the row's is no negative.
        excluded: bool `[rows, num_columns]` or `None`; true where the caller
            knows a positive.
        is_valid: bool `[num_columns]` or `None`; false for padding.
        log_weight: float. Added to every logit of the block.
        is_same_tower: bool. Whether the columns come from the rows' own tower.
    """

    columns: tf.Tensor
    row_index: tf.Tensor
    group_size: int = 1
    scope: str = "others"
    row_ids: Sequence[tf.Tensor] = ()
    column_ids: Sequence[tf.Tensor] = ()
    excluded: tf.Tensor | None = None
    is_valid: tf.Tensor | None = None
    log_weight: float = 0.0
    is_same_tower: bool = False

    def padded(self, multiple: int) -> "Block":
        """Returns the block with columns added up to a multiple.

        Added columns are invalid, and hold zeros.
        """
        width = self.columns.shape[0]
        if width is not None and width % multiple == 0:
            # A pad of nothing would still copy the matrix.
            return self
        count = tf.shape(self.columns)[0]
        missing = -count % multiple
        is_valid = self.is_valid
        if is_valid is None:
            is_valid = tf.fill([count], True)
        excluded = self.excluded
        if excluded is not None:
            excluded = tf.pad(excluded, [[0, 0], [0, missing]])
        return dataclasses.replace(
            self,
            columns=tf.pad(self.columns, [[0, missing], [0, 0]]),
            column_ids=[tf.pad(i, [[0, missing]]) for i in self.column_ids],
            excluded=excluded,
            is_valid=tf.pad(is_valid, [[0, missing]]),
        )

    def mask(self, start: tf.Tensor | int, size: int | None) -> tf.Tensor:
        """Returns bool `[rows, size]`, true where a column is a negative.

        Args:
            start: int. First column.
            size: int. Number of columns; `None` for all from `start` on.
        """

        def part(values: tf.Tensor, axis: int = 0) -> tf.Tensor:
            if size is None:
                return values
            begin = [0] * axis + [start]
            shape = [-1] * axis + [size]
            return tf.slice(values, begin, shape)

        count = tf.shape(self.columns)[0] if size is None else size
        example = (tf.range(count) + start) // self.group_size
        is_own = self.row_index[:, None] == example[None, :]
        if self.scope == "others":
            keep = tf.logical_not(is_own)
        elif self.scope == "own":
            keep = is_own
        else:
            keep = tf.ones_like(is_own)
        if self.is_valid is not None:
            keep &= part(self.is_valid)[None, :]
        for rows, columns in zip(self.row_ids, self.column_ids, strict=True):
            keep &= rows[:, None] != part(columns)[None, :]
        if self.excluded is not None:
            keep &= tf.logical_not(part(self.excluded, axis=1))
        return keep

    def num_candidates(self) -> tf.Tensor:
        """Returns float `[rows]`: columns in scope, before ids and labels."""
        count = tf.shape(self.columns)[0]
        is_valid = self.is_valid
        if is_valid is None:
            is_valid = tf.fill([count], True)
        valid = tf.cast(is_valid, self.columns.dtype)
        per_example = tf.reduce_sum(
            tf.reshape(valid, [count // self.group_size, self.group_size]), 1
        )
        own = tf.gather(per_example, self.row_index)
        everything = tf.fill(tf.shape(own), tf.reduce_sum(valid))
        scopes = {"own": own, "all": everything, "others": everything - own}
        return scopes[self.scope]
