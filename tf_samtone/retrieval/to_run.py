"""Conversion of search results to a run."""

from collections.abc import Sequence

import numpy as np

from tf_samtone.errors import InvalidInputError

__all__ = ["to_run"]


def to_run(
    query_ids: Sequence[str], scores: np.ndarray, ids: np.ndarray
) -> dict[str, dict[str, float]]:
    """Turn the result of a search into `{query id: {document id: score}}`.

    >>> import numpy as np
    >>> to_run(["q"], np.array([[2.0, 1.0]]), np.array([["a", "b"]]))
    {'q': {'a': 2.0, 'b': 1.0}}

    Args:
        query_ids: distinct str, one per row.
        scores: float `[num_queries, k]`, finite.
        ids: str `[num_queries, k]`, distinct within a row.

    Raises:
        InvalidInputError: for wrong shapes, duplicate ids, NaN or Inf.
    """
    scores = np.asarray(scores)
    ids = np.asarray(ids)
    if scores.ndim != 2 or scores.shape != ids.shape:
        raise InvalidInputError(
            "Expected `scores` and `ids` of one shape [num_queries, k]. "
            f"Received: scores.shape={scores.shape}, ids.shape={ids.shape}. "
            "Pass both as search returned them."
        )
    if len(query_ids) != len(scores):
        raise InvalidInputError(
            "Expected one query id per row. Received: "
            f"{len(query_ids)} query ids for {len(scores)} rows. Pass the "
            "ids in the order of the queries."
        )
    if not np.isfinite(scores).all():
        raise InvalidInputError(
            "Expected finite scores. Received: NaN or Inf in `scores`. "
            "Check the encoder."
        )
    run: dict[str, dict[str, float]] = {}
    for query_id, row_scores, row_ids in zip(
        query_ids, scores.tolist(), ids.tolist(), strict=True
    ):
        row = dict(zip(row_ids, row_scores, strict=True))
        if query_id in run or len(row) != len(row_ids):
            raise InvalidInputError(
                "Expected distinct query ids, and distinct documents per "
                f"query. Received: a duplicate at query {query_id!r}. "
                "Remove it."
            )
        run[query_id] = row
    return run
