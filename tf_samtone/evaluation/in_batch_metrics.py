"""P@1 and MRR within the batch, during `fit`."""

from typing import Any

from tf_samtone.evaluation.ranking_metrics import load_ranking_metrics

__all__ = ["in_batch_metrics"]


def in_batch_metrics() -> list[Any]:
    """Returns precision at 1 and mean reciprocal rank within the batch.

    They rank the documents of the batch for each query; the one right answer
    is the query's own document. Made for `DualEncoder.compile`:

    >>> # model.compile(optimizer, loss, metrics=in_batch_metrics())

    The figures depend on the batch size and are far above those over a corpus.

    Returns:
        tensorflow-ranking's `PrecisionMetric` and `MRRMetric`, named `"p@1"`
        and `"mrr"`; of equal scores the first in the batch ranks first.

    Raises:
        MissingDependencyError: if tensorflow-ranking cannot be imported.
    """
    metrics = load_ranking_metrics()
    # Here, since this package is to be imported without TensorFlow.
    from tf_samtone.models.ties_by_position import TiesByPosition

    return [
        TiesByPosition(metrics.PrecisionMetric(name="p@1", topn=1)),
        TiesByPosition(metrics.MRRMetric(name="mrr")),
    ]
