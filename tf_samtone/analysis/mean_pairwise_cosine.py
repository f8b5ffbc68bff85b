"""How far embeddings have moved into one point."""

import numpy as np
import numpy.typing as npt

from tf_samtone.errors import InvalidInputError

__all__ = ["mean_pairwise_cosine"]


def mean_pairwise_cosine(embeddings: npt.ArrayLike) -> float:
    """Returns the mean cosine of all pairs of different rows.

        ( |sum_i x_i|^2 - n ) / ( n (n - 1) )       for unit vectors x_i

    1 means that all texts have the same embedding, 0 that they are spread
    evenly.

    >>> mean_pairwise_cosine(np.eye(2))
    0.0

    Args:
        embeddings: float `[n, dim]`, n > 1; rows are scaled to unit length.

    Returns:
        float in [-1, 1]; NaN if an embedding is not finite.

    Raises:
        InvalidInputError: if there are fewer than two rows.
    """
    rows = np.asarray(embeddings, np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise InvalidInputError(
            "Expected `embeddings` of shape [n, dim] with n > 1. Received: "
            f"shape={rows.shape}."
        )
    count = len(rows)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows / np.maximum(norms, np.finfo(np.float64).tiny)
    total = np.sum(np.square(rows.sum(axis=0)))
    return float((total - np.sum(np.square(rows))) / (count * (count - 1)))
