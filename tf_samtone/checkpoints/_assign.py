"""Copying of stored tensors into variables with little memory beside them."""

from collections.abc import Callable
from typing import Any

import numpy as np

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
    target = variable.value
    for start in range(0, shape[0], step):
        stop = min(start + step, shape[0])
        rows = read_rows(start, stop)
        # In place; a whole `assign` would hold the tensor twice.
        if transposed:
            target[:, start:stop].assign(rows.T)
        else:
            target[start:stop].assign(rows)
