"""Which pairs of a batch may act as negatives of each other."""

import tensorflow as tf

__all__ = ["negative_mask", "self_mask"]


def self_mask(num_rows, num_columns, row_offset=0):
    """Marks, for each local row, the column that is the row itself.

    Args:
        num_rows: int. Rows on this replica.
        num_columns: int. Rows of the global batch.
        row_offset: int. Global index of the first local row. Defaults to `0`.

    Returns:
        bool `[num_rows, num_columns]`, true where column = row + offset.
    """
    rows = tf.range(num_rows) + tf.cast(row_offset, tf.int32)
    return rows[:, None] == tf.range(num_columns)[None, :]


def negative_mask(is_self, row_ids, column_ids):
    """Marks the columns that may be negatives of each row.

    Two examples are not negatives of each other when their query ids or their
    document ids are equal: the same question may have several right answers,
    and the same answer may serve several questions. An example is never a
    negative of itself.

    Args:
        is_self: bool `[rows, columns]`, see `self_mask`.
        row_ids: sequence of int64 `[rows]`; one entry per kind of id.
        column_ids: sequence of int64 `[columns]`, kinds in the same order.

    Returns:
        bool `[rows, columns]`.
    """
    is_negative = tf.logical_not(is_self)
    for rows, columns in zip(row_ids, column_ids, strict=True):
        is_negative &= rows[:, None] != columns[None, :]
    return is_negative
