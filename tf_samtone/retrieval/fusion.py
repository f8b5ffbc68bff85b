"""Combination of several runs into one.

A document that one run did not retrieve is treated as its worst: it gets
nothing from that run in `reciprocal_rank_fusion`, and the lowest normalised
score of that run and query in `weighted_fusion`. A query that a run lacks
gets nothing from that run. Queries and documents of all runs are kept.
"""

import math
from collections.abc import Sequence

import numpy as np

from tf_samtone.errors import InvalidInputError

__all__ = ["reciprocal_rank_fusion", "weighted_fusion"]

Run = dict[str, dict[str, float]]

_NORMALISATIONS = ("min_max", "z_score")


def reciprocal_rank_fusion(
    runs: Sequence[Run],
    k: float = 60,
    *,
    weights: Sequence[float] | None = None,
) -> Run:
    """Fuse runs by the ranks of their documents.

        score(d) = sum over runs r of  weight_r / (k + rank_r(d))

    Ranks start at 1 and follow trec_eval: by score descending, ties by
    document id descending. A missing document adds nothing.

    >>> fused = reciprocal_rank_fusion([{"q": {"a": 9.0, "b": 1.0}},
    ...                                 {"q": {"b": 0.5}}], k=1)
    >>> round(fused["q"]["b"], 4)
    0.8333

    Args:
        runs: one or more runs.
        k: float. Flattens the influence of the first ranks, at least 0.
            Defaults to `60`.
        weights: one float, at least 0, per run. Defaults to 1 for each.

    Raises:
        InvalidInputError: for no runs, NaN scores or impossible weights.

    Reference:
        Cormack et al., 2009, Reciprocal Rank Fusion outperforms Condorcet
        and individual Rank Learning Methods,
        https://doi.org/10.1145/1571941.1572114
    """
    if isinstance(runs, dict) or not runs:
        raise InvalidInputError(
            "Expected a non-empty list of runs. Received: "
            f"{type(runs).__name__} of length {len(runs)}. Pass [run, ...]."
        )
    if not math.isfinite(k) or k < 0:
        raise InvalidInputError(
            f"Expected `k` to be at least 0. Received: k={k!r}. Use 60."
        )
    factors = _check_weights(weights, len(runs))
    fused: Run = {}
    for run, factor in zip(runs, factors, strict=True):
        for query_id, scores in run.items():
            row = fused.setdefault(query_id, {})
            _check_scores(query_id, scores)
            ranked = sorted(
                scores, key=lambda doc: (scores[doc], doc), reverse=True
            )
            for rank, document_id in enumerate(ranked, start=1):
                row[document_id] = row.get(document_id, 0.0) + factor / (
                    k + rank
                )
    return fused


def weighted_fusion(
    run_a: Run,
    run_b: Run,
    weight: float,
    *,
    normalisation: str = "min_max",
) -> Run:
    """Fuse two runs by a weighted sum of their normalised scores.

        score(d) = weight * norm_a(d) + (1 - weight) * norm_b(d)

    Scores are normalised per query: `"min_max"` maps them to 0 ... 1,
    `"z_score"` to mean 0 and standard deviation 1. A list whose scores are
    all equal says nothing about its documents: it becomes all 0. A missing
    document gets the lowest normalised score of the list.

    >>> weighted_fusion({"q": {"a": 2.0, "b": 1.0}},
    ...                 {"q": {"b": 8.0, "c": 4.0}}, 0.75)
    {'q': {'a': 0.75, 'b': 0.25, 'c': 0.0}}

    Args:
        run_a: a run.
        run_b: another run.
        weight: float from 0 to 1, the share of `run_a`.
        normalisation: `"min_max"` or `"z_score"`. Defaults to `"min_max"`.

    Raises:
        InvalidInputError: for NaN scores, a weight outside of 0 ... 1 or an
            unknown normalisation.
    """
    check_share(weight)
    if normalisation not in _NORMALISATIONS:
        raise InvalidInputError(
            f"Expected `normalisation` to be one of {_NORMALISATIONS}. "
            f"Received: normalisation={normalisation!r}. Pass one of these."
        )
    fused: Run = {}
    for query_id in dict.fromkeys([*run_a, *run_b]):
        row_a, lowest_a = _normalise(
            query_id, run_a.get(query_id, {}), normalisation
        )
        row_b, lowest_b = _normalise(
            query_id, run_b.get(query_id, {}), normalisation
        )
        fused[query_id] = {
            document_id: weight * row_a.get(document_id, lowest_a)
            + (1 - weight) * row_b.get(document_id, lowest_b)
            for document_id in dict.fromkeys([*row_a, *row_b])
        }
    return fused


def check_share(weight: float) -> None:
    """Raise unless the weight is a share from 0 to 1."""
    if not 0 <= weight <= 1:
        raise InvalidInputError(
            "Expected a weight from 0 to 1, the share of run_a. Received: "
            f"weight={weight!r}. Pass e.g. 0.5."
        )


def _normalise(
    query_id: str, scores: dict[str, float], normalisation: str
) -> tuple[dict[str, float], float]:
    """Return the normalised scores and the lowest of them."""
    if not scores:
        return {}, 0.0
    _check_scores(query_id, scores)
    values = np.array(list(scores.values()), dtype=np.float64)
    if values.max() == values.min():
        return dict.fromkeys(scores, 0.0), 0.0
    if normalisation == "min_max":
        values = (values - values.min()) / (values.max() - values.min())
    else:
        values = (values - values.mean()) / values.std()
    row = dict(zip(scores, values.tolist(), strict=True))
    return row, float(values.min())


def _check_scores(query_id: str, scores: dict[str, float]) -> None:
    for document_id, score in scores.items():
        if not math.isfinite(score):
            raise InvalidInputError(
                "Expected finite scores. Received: score="
                f"{score} of document {document_id!r}, query {query_id!r}. "
                "Check the encoder."
            )


def _check_weights(
    weights: Sequence[float] | None, count: int
) -> Sequence[float]:
    if weights is None:
        return [1.0] * count
    valid = all(math.isfinite(weight) and weight >= 0 for weight in weights)
    if len(weights) != count or not valid or not any(weights):
        raise InvalidInputError(
            f"Expected {count} weights of at least 0, not all 0. Received: "
            f"weights={list(weights)!r}. Pass one per run."
        )
    return weights
