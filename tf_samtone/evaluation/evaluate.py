"""Mean metrics of a run."""

import math
from collections.abc import Iterable, Mapping

from tf_samtone.evaluation.evaluate_per_query import (
    DEFAULT_METRICS,
    evaluate_per_query,
)

__all__ = ["evaluate"]


def evaluate(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    metrics: Iterable[str] = DEFAULT_METRICS,
) -> dict[str, float]:
    """Return the mean of every metric over all judged queries.

    A judged query that the run lacks counts as 0. The rules of rank, ties
    and relevance are those of `evaluate_per_query`.

    >>> evaluate({"q": {"a": 2.0, "b": 1.0}}, {"q": {"b": 1}}, ["MRR@10"])
    {'MRR@10': 0.5}

    Args:
        run: `{query id: {document id: score}}`, finite scores.
        qrels: `{query id: {document id: relevance}}`, integers.
        metrics: as for `evaluate_per_query`. Defaults to P@1, MRR@10,
            nDCG@10 and R@100.

    Returns:
        `{name: float}`, with the names as they were given.

    Raises:
        InvalidInputError: as `evaluate_per_query`.
        MissingDependencyError: if pytrec_eval is not installed.
    """
    rows = list(evaluate_per_query(run, qrels, metrics).values())
    return {
        name: math.fsum(row[name] for row in rows) / len(rows)
        for name in rows[0]
    }
