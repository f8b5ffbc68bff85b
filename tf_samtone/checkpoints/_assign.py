"""Copying of stored tensors into variables with little memory beside them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

_CHUNK_BYTES = 8 * 2**20


def assign_streamed(
    variable: Any,
    read_rows: Callable[[int, int], np.ndarray],
    *,
    transposed: bool = False,
) -> None:
    """Copy a stored tensor into a variable, a few rows at a time.

    Args:
        variable: Keras variable of one or two axes.
        read_rows: from (start, stop) to float32 rows of the stored tensor,
            whose first axis is the variable's, or its last if `transposed`.
        transposed: bool. Whether the stored tensor is [out, in] and the
            variable [in, out]. Defaults to `False`.
    """
    shape = tuple(variable.shape)[::-1] if transposed else tuple(variable.shape)
    row_bytes = 4 * int(np.prod(shape[1:]))
    step = max(1, _CHUNK_BYTES // row_bytes)
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        rows = read_rows(start, stop)
        if transposed:
            _assign_part(variable.value, rows.T, axis=1, start=start)
        else:
            _assign_part(variable.value, rows, axis=0, start=start)


def _assign_part(
    variable: tf.Variable, values: np.ndarray, *, axis: int, start: int
) -> None:
    """Overwrite a part of a variable along one axis, in place.

    `variable[start:stop].assign` would first read an alias of the variable, so
    that the assignment has to copy the whole of it (TensorFlow 2.20).
    """
    begin = [0] * values.ndim
    begin[axis] = start
    end = [
        first + size for first, size in zip(begin, values.shape, strict=True)
    ]
    tf.raw_ops.ResourceStridedSliceAssign(
        ref=variable.handle,
        begin=begin,
        end=end,
        strides=[1] * values.ndim,
        value=tf.constant(values, variable.dtype),
    )
