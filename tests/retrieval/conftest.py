"""Fixtures of the retrieval tests."""

import numpy as np
import pytest


def unit_rows(count, dim, seed):
    """Return float32 `[count, dim]` with rows of norm 1."""
    rows = np.random.default_rng(seed).normal(size=(count, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32)


@pytest.fixture
def corpus():
    """Return 300 documents of dim 16 and their ids."""
    return unit_rows(300, 16, seed=1), [f"d{i}" for i in range(300)]


@pytest.fixture
def queries():
    """Return 7 queries of dim 16."""
    return unit_rows(7, 16, seed=2)


@pytest.fixture
def brute_force():
    """Return the oracle: float64 scores and a stable full sort."""

    def search(embeddings, ids, queries, k):
        scores = queries.astype(np.float64) @ embeddings.astype(np.float64).T
        order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(scores, order, axis=1)
        return best, np.array(ids, dtype=object)[order]

    return search
