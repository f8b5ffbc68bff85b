"""Helpers that several tests share."""

import numpy as np

# The fixture of three questions, three answers and three hard negatives, as
# angles of 2-D unit vectors, at temperature 0.05.
QUERY_DEGREES = (0, 40, 100)
DOCUMENT_DEGREES = (15, 70, 85)
HARD_NEGATIVE_DEGREES = (60, 120, 170)


def unit_vectors_at(degrees) -> np.ndarray:
    """Return float64 `[n, 2]`, unit vectors at the angles."""
    radians = np.radians(np.asarray(degrees, np.float64))
    return np.stack([np.cos(radians), np.sin(radians)], axis=-1)


def random_unit_vectors(seed: int, *shape: int) -> np.ndarray:
    """Return float32 `shape`, random vectors of length 1."""
    x = np.random.default_rng(seed).normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def reference_loss(
    queries,
    documents,
    *,
    temperature,
    same_tower=None,
    bidirectional=True,
    direction_reduction="sum",
    hard_negatives=None,
    hard_negative_mask=None,
    query_ids=None,
    document_ids=None,
) -> np.ndarray:
    """Compute the losses of this package row by row in float64.

    Written from the formulas, with lists of terms in place of masks and a
    plain log-sum-exp, so that it shares no idea with the code under test.

    Returns:
        float64 `[batch]`.
    """
    q = np.asarray(queries, np.float64)
    p = np.asarray(documents, np.float64)
    batch = len(q)
    kinds = [ids for ids in (query_ids, document_ids) if ids is not None]

    def others(i: int) -> list[int]:
        return [
            j
            for j in range(batch)
            if j != i and all(ids[i] != ids[j] for ids in kinds)
        ]

    def row(anchors, positives, i, with_same_tower, extra) -> float:
        terms = [anchors[i] @ positives[i]]
        terms += [anchors[i] @ positives[j] for j in others(i)]
        if with_same_tower:
            terms += [anchors[i] @ anchors[j] for j in others(i)]
        terms += [anchors[i] @ vector for vector in extra]
        logits = np.asarray(terms) / temperature
        highest = logits.max()
        return highest + np.log(np.exp(logits - highest).sum()) - logits[0]

    extra = []
    if hard_negatives is not None:
        n = np.asarray(hard_negatives, np.float64)
        keep = np.ones(n.shape[:2], bool)
        if hard_negative_mask is not None:
            keep = np.asarray(hard_negative_mask, bool)
        extra = list(n[keep])
    loss = np.zeros(batch)
    for i in range(batch):
        loss[i] = row(q, p, i, same_tower in ("query", "both"), extra)
        if bidirectional:
            in_documents = same_tower in ("document", "both")
            loss[i] += row(p, q, i, in_documents, [])
    return loss / 2 if direction_reduction == "mean" else loss


def central_differences(function, x, step=1e-6) -> np.ndarray:
    """Return float64 gradient of a scalar function of one array."""
    x = np.array(x, np.float64)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = x.copy()
        moved[index] += step
        above = function(moved)
        moved[index] -= 2 * step
        gradient[index] = (above - function(moved)) / (2 * step)
    return gradient
