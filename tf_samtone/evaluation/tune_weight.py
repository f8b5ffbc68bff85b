"""Choice of the weight of a weighted fusion."""

from collections.abc import Sequence

import numpy as np

from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation.evaluate import evaluate
from tf_samtone.retrieval.fusion import check_share, weighted_fusion

__all__ = ["tune_weight"]

Run = dict[str, dict[str, float]]


def tune_weight(
    run_a: Run,
    run_b: Run,
    qrels: dict[str, dict[str, int]],
    *,
    metric: str = "MRR@10",
    weights: Sequence[float] | None = None,
    normalisation: str = "min_max",
) -> float:
    """Return the weight of `weighted_fusion` that is best on these qrels.

    Choose it on a development split, never on the queries that the result
    is reported for.

    Args:
        run_a: a run.
        run_b: another run.
        qrels: judgments of the development queries.
        metric: str, as for `evaluate`. Defaults to `"MRR@10"`.
        weights: floats from 0 to 1 to try. Defaults to 0, 0.05, ..., 1.
        normalisation: as for `weighted_fusion`.

    Returns:
        float. Of equally good weights the first that was given.

    Raises:
        InvalidInputError: as `weighted_fusion` and `evaluate`, or for an
            empty `weights`.
    """
    if weights is None:
        weights = [step / 20 for step in range(21)]
    if not len(weights):
        raise InvalidInputError(
            "Expected at least one weight to try. Received: weights=[]. "
            "Omit it to use 0, 0.05, ..., 1."
        )
    for weight in weights:
        check_share(weight)
    figures = [
        evaluate(
            weighted_fusion(run_a, run_b, weight, normalisation=normalisation),
            qrels,
            [metric],
        )[metric]
        for weight in weights
    ]
    return float(weights[int(np.argmax(figures))])
