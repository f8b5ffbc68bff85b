"""Several short sequences in one row, in place of padding."""

import tensorflow as tf

from tf_samtone.errors import InvalidInputError


def pack_rows(
    tokens: tf.RaggedTensor,
    row_length: int,
    *,
    groups: int = 1,
    row_multiple: int = 1,
    rows: int | None = None,
    pad_id: int = 0,
    name: str = "tokens",
) -> dict[str, tf.Tensor]:
    """Packs sequences into rows of one length, first-fit decreasing.

    The examples are cut into `groups` consecutive equal groups (replicas,
    micro-batches), each packed on its own into the same number of rows. In a
    group, examples are taken from long to short, earlier ones first among
    equals; each goes to the first row that still has room. So the result is
    a function of the tokens alone. Only TensorFlow ops are used: it runs
    inside `tf.data`.

    A loop over the distinct lengths places all examples of one length at
    once, which is the same as placing them one by one.

    >>> tokens = tf.ragged.constant([[5, 5], [6, 6, 6], [7]])
    >>> packed = pack_rows(tokens, 4)
    >>> packed["token_ids"].numpy().tolist()
    [[6, 6, 6, 7], [5, 5, 0, 0]]
    >>> packed["segment_ids"].numpy().tolist()
    [[2, 2, 2, 3], [1, 1, 0, 0]]

    Args:
        tokens: int32 ragged `[batch, (length)]`, `1 <= length <= row_length`.
        row_length: int, tokens per row.
        groups: int. Divides the batch. Defaults to `1`.
        row_multiple: int. The rows of a group are rounded up to a multiple
            of it, so that few shapes exist. Defaults to `1`.
        rows: int. A fixed number of rows per group, for devices that need
            static shapes; `None` for as many as are needed, rounded up.
            Defaults to `None`.
        pad_id: int, the token of empty places. Defaults to `0`.
        name: str. What an error calls the examples. Defaults to `"tokens"`.

    Returns:
        dict of `"token_ids"` and `"segment_ids"`, int32
        `[groups * rows, row_length]`, and `"lengths"`, int32 `[batch]`. A
        segment id is 1 + the example's number within its group, 0 where
        nothing is.

    Raises:
        InvalidInputError: if an option is less than 1, or `groups` does not
            divide a batch size known in advance.
        tf.errors.InvalidArgumentError: when run, if a sequence is empty or
            too long, or a batch needs more than `rows` rows.

    Reference:
        Krell et al., 2021, Efficient Sequence Packing without
        Cross-contamination, https://arxiv.org/abs/2107.02027
    """
    _check_options(
        tokens.shape[0],
        row_length=row_length,
        groups=groups,
        row_multiple=row_multiple,
        rows=1 if rows is None else rows,
    )
    lengths = tf.cast(tokens.row_lengths(), tf.int32)
    with tf.control_dependencies(_length_checks(lengths, row_length, name)):
        by_group = tf.reshape(lengths, [groups, -1])
    order, row_of = _first_fit_decreasing(by_group, row_length)
    # Within a row the order of placing stays: a stable sort by row.
    by_row = tf.argsort(row_of, axis=1, stable=True)
    order = tf.gather(order, by_row, batch_dims=1)
    row_of = tf.gather(row_of, by_row, batch_dims=1)
    needed = tf.reduce_max(row_of) + 1
    num_rows = _rounded(needed, row_multiple) if rows is None else rows
    checks = [] if rows is None else [_fits(needed, rows, row_length, name)]
    with tf.control_dependencies(checks):
        starts = tf.range(groups)[:, tf.newaxis]
        examples = tf.reshape(order + starts * tf.shape(order)[1], [-1])
        global_rows = tf.reshape(row_of + starts * num_rows, [-1])
    lengths_in_order = tf.gather(lengths, examples)
    row_sums = tf.math.unsorted_segment_sum(
        lengths_in_order, global_rows, groups * num_rows
    )
    segments = tf.repeat(tf.reshape(order + 1, [-1]), lengths_in_order)
    token_ids = tf.gather(tokens, examples).flat_values

    def as_rows(flat: tf.Tensor, default: int) -> tf.Tensor:
        ragged = tf.RaggedTensor.from_row_lengths(
            flat, row_sums, validate=False
        )
        dense = ragged.to_tensor(default, shape=[None, row_length])
        return tf.ensure_shape(
            dense, [None if rows is None else groups * rows, row_length]
        )

    return {
        "token_ids": as_rows(tf.cast(token_ids, tf.int32), pad_id),
        "segment_ids": as_rows(segments, 0),
        "lengths": tf.ensure_shape(lengths, [tokens.shape[0]]),
    }


def _first_fit_decreasing(
    lengths: tf.Tensor, row_length: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the examples from long to short, and the row of each.

    Args:
        lengths: int32 `[groups, size]`.
        row_length: int.

    Returns:
        two int32 `[groups, size]`.
    """
    groups, size = tf.unstack(tf.shape(lengths))
    order = tf.argsort(lengths, axis=1, direction="DESCENDING", stable=True)
    distinct = tf.sort(
        tf.unique(tf.reshape(lengths, [-1]))[0], direction="DESCENDING"
    )
    counts = tf.math.count_nonzero(
        lengths[tf.newaxis] == distinct[:, tf.newaxis, tf.newaxis],
        axis=2,
        dtype=tf.int32,
    )

    def place(
        step: tf.Tensor, free: tf.Tensor, placed: tf.TensorArray
    ) -> tuple[tf.Tensor, tf.Tensor, tf.TensorArray]:
        length = distinct[step]
        # How many examples of this length fit into each row; first rows first.
        room = free // length
        before = tf.cumsum(room, axis=1, exclusive=True)
        count = counts[step][:, tf.newaxis]
        taken = tf.clip_by_value(count - before, 0, room)
        return step + 1, free - taken * length, placed.write(step, taken)

    # One row per example is always enough, and so are the rows in which any
    # two together hold more than one row's tokens.
    total = tf.reduce_max(tf.reduce_sum(lengths, axis=1))
    num_rows = tf.minimum(size, 2 * total // row_length + 1)
    _, _, placed = tf.while_loop(
        lambda step, *_: step < tf.size(distinct),
        place,
        (
            tf.constant(0),
            tf.fill([groups, num_rows], row_length),
            tf.TensorArray(tf.int32, tf.size(distinct)),
        ),
        parallel_iterations=1,
    )
    taken = tf.transpose(placed.stack(), [1, 0, 2])
    row_numbers = tf.broadcast_to(tf.range(num_rows), tf.shape(taken))
    row_of = tf.repeat(tf.reshape(row_numbers, [-1]), tf.reshape(taken, [-1]))
    return order, tf.reshape(row_of, [groups, size])


def _rounded(count: tf.Tensor, multiple: int) -> tf.Tensor:
    return (count + multiple - 1) // multiple * multiple


def _length_checks(
    lengths: tf.Tensor, row_length: int, name: str
) -> list[tf.Operation]:
    message = (
        f"Expected every example of `{name}` to have 1 to {row_length} "
        "tokens, the length of a row. Truncate the texts or raise the row "
        "length."
    )
    return [
        tf.debugging.assert_positive(lengths, message),
        tf.debugging.assert_less_equal(lengths, row_length, message),
    ]


def _fits(
    needed: tf.Tensor, rows: int, row_length: int, name: str
) -> tf.Operation:
    return tf.debugging.Assert(
        needed <= rows,
        [
            f"Expected every batch of `{name}` to fit into rows={rows} rows "
            f"of {row_length} tokens per group. Rows needed:",
            needed,
            "Raise rows, or lower the batch size.",
        ],
    )


def _check_options(batch_size: int | None, **options: int) -> None:
    for name, value in options.items():
        if not isinstance(value, int) or value < 1:
            raise InvalidInputError(
                f"Expected `{name}` to be an int of at least 1. Received: "
                f"{name}={value!r}. Pass a whole number."
            )
    groups = options["groups"]
    if batch_size is not None and batch_size % groups:
        raise InvalidInputError(
            "Expected `groups` to divide the batch. Received: "
            f"groups={groups}, a batch of {batch_size}. Change either."
        )
