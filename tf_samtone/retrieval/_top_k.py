"""Selection of the best scores with a stated order of ties."""

import numpy as np

__all__ = ["top_k_positions"]


def top_k_positions(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the positions of the `k` largest scores, best first.

    Equal scores keep their order of position, also at the cut: of several
    documents that tie for the last place, the earliest is returned.

    Args:
        scores: float `[num_docs]`, without NaN.
        k: int, from 1 to num_docs.

    Returns:
        int64 `[k]`.
    """
    if k < scores.size:
        threshold = np.partition(scores, scores.size - k)[scores.size - k]
        candidates = np.flatnonzero(scores >= threshold)
    else:
        candidates = np.arange(scores.size)
    order = np.argsort(-scores[candidates], kind="stable")[:k]
    return candidates[order].astype(np.int64)
