"""Metrics of a run for each query, by trec_eval's rules."""

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from tf_samtone.errors import InvalidInputError, MissingDependencyError
from tf_samtone.evaluation._checks import checked_qrels, checked_run
from tf_samtone.evaluation._metric_names import Metric, parse_metric

__all__ = ["DEFAULT_METRICS", "evaluate_per_query"]

DEFAULT_METRICS = ("P@1", "MRR@10", "nDCG@10", "R@100")

_LOGGER = logging.getLogger("tf_samtone")


def evaluate_per_query(
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    metrics: Iterable[str] = DEFAULT_METRICS,
) -> dict[str, dict[str, float]]:
    """Return the metrics of every judged query.

    The rules are trec_eval's: the rank is by score as float32, descending;
    ties by document id, descending. A relevance of 1 or more is relevant;
    nDCG uses the relevance as a linear gain. P@k divides by k even if fewer
    documents were retrieved.

    Every query of the qrels counts: one that the run lacks, or that has no
    relevant document, gets 0, so leaving queries out cannot raise a mean.
    Queries of the run without judgments are ignored.

    Args:
        run: `{query id: {document id: score}}`, finite scores.
        qrels: `{query id: {document id: relevance}}`, integers.
        metrics: names with a cut-off; case does not matter: `P@k`, `R@k`,
            `MRR@k`, `nDCG@k`, `MAP@k`, `success@k`. Defaults to P@1,
            MRR@10, nDCG@10 and R@100.

    Returns:
        `{query id: {name: float}}`, in the order of the qrels, with the
        names as they were given.

    Raises:
        InvalidInputError: for NaN scores, empty qrels, an unknown metric,
            or if run and qrels have no query in common.
        MissingDependencyError: if pytrec_eval is not installed.

    Reference:
        Van Gysel and de Rijke, 2018, Pytrec_eval: An Extremely Fast Python
        Interface to trec_eval, https://arxiv.org/abs/1805.01597
    """
    parsed = _parse_metrics(metrics)
    judgments = checked_qrels(qrels)
    judged = _judged_part(run, judgments)
    answers = _trec_eval(checked_run(judged), judgments, parsed)
    return {
        query_id: {
            metric.name: _value(metric, answers.get(query_id))
            for metric in parsed
        }
        for query_id in judgments
    }


def _parse_metrics(metrics: Iterable[str]) -> list[Metric]:
    names = [metrics] if isinstance(metrics, str) else metrics
    parsed = [parse_metric(name) for name in names]
    if not parsed:
        raise InvalidInputError(
            "Expected at least one metric. Received: metrics=[]. Pass for "
            "example ['nDCG@10']."
        )
    return parsed


def _judged_part(
    run: Mapping[str, Mapping[str, float]],
    judgments: Mapping[str, Mapping[str, int]],
) -> dict[str, Mapping[str, float]]:
    """Return the queries of the run that have judgments; report the gap."""
    judged = {
        query_id: scores
        for query_id, scores in run.items()
        if query_id in judgments
    }
    if not judged:
        raise InvalidInputError(
            "Expected a run and qrels with queries in common. Received: run "
            f"of {list(run)[:3]}..., qrels of {list(judgments)[:3]}... "
            "Check that both are of the same collection and split."
        )
    if len(judged) < len(judgments):
        _LOGGER.warning(
            "%d of %d judged queries are missing from the run and count as 0.",
            len(judgments) - len(judged),
            len(judgments),
        )
    return judged


def _trec_eval(
    run: dict[str, dict[str, float]],
    qrels: dict[str, dict[str, int]],
    metrics: list[Metric],
) -> dict[str, dict[str, float]]:
    try:
        import pytrec_eval
    except ImportError as error:
        raise MissingDependencyError(
            f"Expected pytrec_eval to be installed. Received: {error}. Run "
            "`pip install pytrec-eval-terrier`."
        ) from error
    evaluator: Any = pytrec_eval.RelevanceEvaluator(
        qrels, {metric.request for metric in metrics}
    )
    answers: dict[str, dict[str, float]] = evaluator.evaluate(run)
    return answers


def _value(metric: Metric, answer: dict[str, float] | None) -> float:
    if answer is None:
        return 0.0
    value = answer[metric.key]
    # trec_eval's recip_rank looks at all ranks. It is 1/rank of the first
    # relevant document, so cutting the run at k is to drop ranks beyond k.
    if metric.measure == "recip_rank" and value * (metric.cutoff + 0.5) < 1:
        return 0.0
    return float(value)
