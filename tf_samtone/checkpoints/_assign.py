"""Copying of stored tensors into variables with little memory beside them."""

import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_samtone.errors import MismatchError

__all__ = ["assign_streamed", "check_equal"]

_CHUNK_BYTES = 8 * 2**20


def assign_streamed(
    variable: Any,
    read_rows: Callable[[int, int], np.ndarray],
    *,
    transposed: bool = False,
) -> None:
    """Copy a stored tensor into a variable, a few rows at a time.

    Args:
        variable: Keras variable of one or two axes; in the scope of a
            strategy, the copies of all replicas are written.
        read_rows: from (start, stop) to float32 rows of the stored tensor,
            whose first axis is the variable's, or its last if `transposed`.
        transposed: bool. Whether the stored tensor is [out, in] and the
            variable [in, out]. Defaults to `False`.
    """
    shape = tuple(variable.shape)[::-1] if transposed else tuple(variable.shape)
    for start, stop in _chunks(shape):
        rows = read_rows(start, stop)
        if transposed:
            _assign_part(variable.value, rows.T, axis=1, start=start)
        else:
            _assign_part(variable.value, rows, axis=0, start=start)


def check_equal(
    variable: keras.Variable,
    read_rows: Callable[[int, int], np.ndarray],
    source: pathlib.Path,
) -> None:
    """Raise `MismatchError` unless a variable has the values of a file.

    Args:
        variable: Keras variable.
        read_rows: from (start, stop) to float32 rows of the stored tensor.
        source: the file, for the message.
    """
    for start, stop in _chunks(tuple(variable.shape)):
        stored = tf.cast(read_rows(start, stop), variable.dtype)
        if not tf.reduce_all(variable.value[start:stop] == stored):
            raise MismatchError(
                f"Expected {variable.path} in {source} to have the values of "
                "the other tower, which shares it. Received: others. Use "
                "folders that were saved together."
            )


def _chunks(shape: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row, exclusive, of a few MiB each."""
    step = max(1, _CHUNK_BYTES // (4 * int(np.prod(shape[1:]))))
    for start in range(0, shape[0], step):
        yield start, min(start + step, shape[0])


def _copies(variable: Any) -> tuple[tf.Variable, ...]:
    """Return the variables of all replicas, which alone have handles."""
    if isinstance(variable, tf.distribute.DistributedValues):
        return tuple(variable.values)
    return (variable,)


def _assign_part(
    variable: Any, values: np.ndarray, *, axis: int, start: int
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
    tensor = tf.constant(values, variable.dtype)
    for copy in _copies(variable):
        tf.raw_ops.ResourceStridedSliceAssign(
            ref=copy.handle,
            begin=begin,
            end=end,
            strides=[1] * values.ndim,
            value=tensor,
        )
