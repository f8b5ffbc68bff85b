"""Tests of in-batch metrics with ties."""

import numpy as np
import pytest

from tf_samtone.evaluation import in_batch_metrics, load_ranking_metrics


def results(metrics, scores):
    labels = np.eye(len(scores), dtype=np.float32)
    for metric in metrics:
        metric.update_state(labels, np.asarray(scores, np.float32))
    return {metric.name: float(metric.result()) for metric in metrics}


def test_without_ties_they_are_those_of_tensorflow_ranking():
    scores = np.random.default_rng(0).normal(size=(7, 7))
    metrics = load_ranking_metrics()
    expected = results(
        [
            metrics.PrecisionMetric(name="p@1", topn=1),
            metrics.MRRMetric(name="mrr"),
        ],
        scores,
    )
    assert results(in_batch_metrics(), scores) == pytest.approx(expected)


def test_of_two_equal_documents_the_first_wins():
    # Documents 0 and 2 are copies. Rank of the own document by row: 1, 1, 2.
    scores = [[0.9, 0.1, 0.9], [0.2, 0.8, 0.2], [0.7, 0.1, 0.7]]

    assert results(in_batch_metrics(), scores) == pytest.approx(
        {"p@1": 2 / 3, "mrr": (1 + 1 + 1 / 2) / 3}
    )


def test_ties_behind_and_ahead_do_not_matter():
    # Row 0: two tied ahead, rank 3. Row 1: two tied behind, rank 1.
    scores = [[0.1, 0.9, 0.9], [0.3, 0.5, 0.3], [0.0, 0.0, 1.0]]

    assert results(in_batch_metrics(), scores)["mrr"] == pytest.approx(
        (1 / 3 + 1 + 1) / 3
    )


def test_a_reset_forgets_what_was_seen():
    metrics = in_batch_metrics()
    results(metrics, [[0.0, 1.0], [1.0, 0.0]])
    for metric in metrics:
        metric.reset_state()

    assert results(metrics, [[1.0, 0.0], [0.0, 1.0]]) == {"p@1": 1, "mrr": 1}


def test_their_variables_are_seen():
    # Checkpoints hold what `variables` gives.
    assert [len(metric.variables) for metric in in_batch_metrics()] == [2, 2]


def test_a_row_of_weight_zero_does_not_count():
    scores = np.array([[0.9, 0.1], [0.7, 0.1]], np.float32)
    labels = np.eye(2, dtype=np.float32)
    metrics = in_batch_metrics()
    for metric in metrics:
        metric.update_state(labels, scores, sample_weight=np.array([1.0, 0.0]))
    found = {metric.name: float(metric.result()) for metric in metrics}
    assert found == {"p@1": 1.0, "mrr": 1.0}
    for metric in metrics:
        metric.update_state(labels, scores, sample_weight=np.array([1.0, 1.0]))
    found = {metric.name: float(metric.result()) for metric in metrics}
    assert found == pytest.approx({"p@1": 2 / 3, "mrr": 2.5 / 3})
