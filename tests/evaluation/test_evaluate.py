"""Means over queries, by hand."""

import logging
import math
import sys

import pytest

from tf_samtone.errors import InvalidInputError, MissingDependencyError
from tf_samtone.evaluation import evaluate

RUN = {
    "q1": {"a": 3.0, "b": 2.0, "c": 1.0},
    "q2": {"a": 3.0, "b": 2.0, "c": 1.0},
}
# The first relevant document is at rank 2 of q1 and rank 1 of q2.
QRELS = {"q1": {"b": 1, "z": 1}, "q2": {"a": 2, "c": 1}}


def test_default_metrics_by_hand():
    figures = evaluate(RUN, QRELS)

    # nDCG with linear gain: q1 has gain 1 at rank 2 of ideal 1 + 1/log2(3);
    # q2 has 2 at rank 1 and 1 at rank 3 of ideal 2 + 1/log2(3).
    second = 1 / math.log2(3)
    ndcg_1 = second / (1 + second)
    ndcg_2 = (2 + 1 / 2) / (2 + second)
    assert figures == pytest.approx(
        {
            "P@1": (0 + 1) / 2,
            "MRR@10": (1 / 2 + 1) / 2,
            "nDCG@10": (ndcg_1 + ndcg_2) / 2,
            "R@100": (1 / 2 + 1) / 2,
        }
    )
    assert list(figures) == ["P@1", "MRR@10", "nDCG@10", "R@100"]


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("P@2", (1 / 2 + 1 / 2) / 2),
        ("P@5", (1 / 5 + 2 / 5) / 2),
        ("R@1", (0 + 1 / 2) / 2),
        ("R@2", (1 / 2 + 1 / 2) / 2),
        ("MRR@1", (0 + 1) / 2),
        ("MRR@2", (1 / 2 + 1) / 2),
        ("success@1", 1 / 2),
        ("success@2", 1.0),
        # q1: 1/2 at rank 2, one of two; q2: 1 at rank 1 and 2/3 at rank 3.
        ("MAP@10", (1 / 2 / 2 + (1 + 2 / 3) / 2) / 2),
        ("MAP@2", (1 / 2 / 2 + 1 / 2) / 2),
        ("nDCG@1", (0 + 2 / 2) / 2),
    ],
)
def test_each_metric_by_hand(metric, expected):
    assert evaluate(RUN, QRELS, [metric])[metric] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("ndcg@10", "nDCG@10"),
        ("NDCG@10", "nDCG@10"),
        ("mrr@10", "MRR@10"),
        ("recall@2", "R@2"),
        ("precision@2", "P@2"),
        ("hit@1", "success@1"),
        ("Map@3", "MAP@3"),
    ],
)
def test_names_are_read_without_case_and_returned_as_given(name, same):
    figures = evaluate(RUN, QRELS, [name, same])

    assert list(figures) == [name, same]
    assert figures[name] == figures[same]


@pytest.mark.parametrize(
    "name", ["MRR", "P@0", "P@", "F1@3", "P@1.5", "@3", "P@-1", "P@1 ", 3]
)
def test_an_unknown_metric_is_refused(name):
    with pytest.raises(InvalidInputError, match="P@k, R@k, MRR@k, nDCG@k"):
        evaluate(RUN, QRELS, [name])


def test_one_metric_needs_no_list():
    assert evaluate(RUN, QRELS, "P@1") == {"P@1": 0.5}


def test_no_metrics_are_refused():
    with pytest.raises(InvalidInputError, match="at least one metric"):
        evaluate(RUN, QRELS, [])


def test_a_missing_query_counts_as_zero(caplog):
    qrels = {**QRELS, "q3": {"a": 1}, "q4": {"a": 1}}

    with caplog.at_level(logging.WARNING, "tf_samtone"):
        figures = evaluate(RUN, qrels, ["P@1"])

    # pytrec_eval itself would leave the two queries out: 1/2.
    assert figures == {"P@1": 1 / 4}
    assert "2 of 4" in caplog.text


def test_a_query_with_an_empty_result_counts_as_zero():
    assert evaluate({**RUN, "q1": {}}, QRELS, ["success@3"]) == {
        "success@3": 0.5
    }


@pytest.mark.parametrize("judgments", [{}, {"a": 0}], ids=["none", "zero"])
def test_a_query_without_relevant_document_counts_as_zero(judgments):
    qrels = {**QRELS, "q1": judgments}

    assert evaluate(RUN, qrels, ["MRR@10", "R@10"]) == {
        "MRR@10": 0.5,
        "R@10": 0.5,
    }


def test_a_query_without_judgments_is_ignored():
    run = {**RUN, "other": {"a": math.nan}}

    assert evaluate(run, QRELS) == evaluate(RUN, QRELS)


def test_a_constant_scorer_is_ranked_by_document_id_descending():
    run = {"q": {"a": 1.0, "c": 1.0, "b": 1.0}}

    figures = evaluate(run, {"q": {"a": 1}}, ["MRR@10", "MRR@2", "P@1"])

    # The order is c, b, a.
    assert figures == pytest.approx({"MRR@10": 1 / 3, "MRR@2": 0, "P@1": 0})


@pytest.mark.parametrize(
    ("run", "qrels", "message"),
    [
        ({"q1": {"a": math.nan}}, QRELS, "score=nan of document 'a'"),
        ({"q1": {"a": math.inf}}, QRELS, "finite scores"),
        ({"q1": {"a": None}}, QRELS, "finite scores"),
        ({"q1": {1: 1.0}}, QRELS, "id=1"),
        ({"q1": {"a\x00b": 1.0}}, QRELS, "without NUL"),
        (RUN, {}, "at least one query"),
        (RUN, {"q1": {"a": 0.5}}, "relevance=0.5"),
        (RUN, {"q1": {"a": "x"}}, "relevance='x'"),
        ({"x": {"a": 1.0}}, QRELS, "queries in common"),
        ({}, QRELS, "queries in common"),
    ],
    ids=[
        "nan",
        "inf",
        "no_number",
        "integer_id",
        "nul",
        "no_qrels",
        "fraction",
        "text",
        "other_queries",
        "no_run",
    ],
)
def test_unusable_input_is_refused(run, qrels, message):
    with pytest.raises(InvalidInputError, match=message):
        evaluate(run, qrels)


def test_a_missing_pytrec_eval_is_named(monkeypatch):
    # None in sys.modules makes the import fail.
    monkeypatch.setitem(sys.modules, "pytrec_eval", None)

    with pytest.raises(MissingDependencyError, match="pytrec-eval-terrier"):
        evaluate(RUN, QRELS)
