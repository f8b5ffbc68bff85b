"""Figures of each query, against pytrec_eval and an own ranking."""

import numpy as np
import pytest
import pytrec_eval

from tf_samtone.evaluation import evaluate, evaluate_per_query


@pytest.fixture(params=[False, True], ids=["no_ties", "ties"])
def collection(request):
    """Return a random run and graded qrels of 40 queries."""
    generator = np.random.default_rng(3)
    documents = [f"d{i}" for i in range(60)]
    run, qrels = {}, {}
    for number in range(40):
        found = generator.choice(documents, size=30, replace=False)
        scores = generator.normal(size=30)
        if request.param:
            scores = scores.round()
        judged = generator.choice(documents, size=8, replace=False)
        grades = generator.integers(0, 4, size=8)
        run[f"q{number}"] = dict(zip(found.tolist(), scores, strict=True))
        qrels[f"q{number}"] = dict(zip(judged.tolist(), grades, strict=True))
    return run, qrels


def plain(table):
    """Return the table with Python numbers, which pytrec_eval needs."""
    return {
        query: {document: value.item() for document, value in row.items()}
        for query, row in table.items()
    }


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("P@1", "P_1"),
        ("P@10", "P_10"),
        ("R@10", "recall_10"),
        ("R@100", "recall_100"),
        ("nDCG@10", "ndcg_cut_10"),
        ("MAP@10", "map_cut_10"),
        ("success@3", "success_3"),
        # 30 documents were retrieved: a cut beyond that is none.
        ("MRR@100", "recip_rank"),
    ],
)
def test_figures_are_those_of_pytrec_eval(collection, name, measure):
    run, qrels = collection
    evaluator = pytrec_eval.RelevanceEvaluator(plain(qrels), {measure})
    expected = evaluator.evaluate(plain(run))

    figures = evaluate_per_query(run, qrels, [name])

    assert {q: row[name] for q, row in figures.items()} == {
        q: row[measure] for q, row in expected.items()
    }


@pytest.mark.parametrize("k", [1, 2, 3, 10, 29])
def test_mrr_at_k_is_the_reciprocal_rank_of_the_run_cut_at_k(collection, k):
    run, qrels = collection
    cut = {}
    for query, scores in plain(run).items():
        # trec_eval's order: score descending, document id descending.
        ranked = sorted(scores, key=lambda d: (scores[d], d), reverse=True)
        cut[query] = {document: scores[document] for document in ranked[:k]}
    evaluator = pytrec_eval.RelevanceEvaluator(plain(qrels), {"recip_rank"})
    expected = evaluator.evaluate(cut)

    figures = evaluate_per_query(run, qrels, [f"MRR@{k}"])

    assert {q: row[f"MRR@{k}"] for q, row in figures.items()} == {
        q: row["recip_rank"] for q, row in expected.items()
    }


@pytest.mark.parametrize("rank", [1, 9, 10, 11, 999, 1000, 1001])
def test_the_rank_at_the_cut_counts_and_the_next_does_not(rank):
    run = {"q": {f"d{i}": float(-i) for i in range(1, 1200)}}
    qrels = {"q": {f"d{rank}": 1}}

    figures = evaluate_per_query(run, qrels, ["MRR@10", "MRR@1000"])["q"]

    assert figures["MRR@10"] == pytest.approx(1 / rank if rank <= 10 else 0)
    assert figures["MRR@1000"] == pytest.approx(1 / rank if rank <= 1000 else 0)


def test_rounding_at_the_cut_does_not_drop_the_rank():
    run = {"q": {f"d{i}": float(-i) for i in range(1, 60)}}

    figures = evaluate_per_query(run, {"q": {"d49": 1}}, ["MRR@49"])

    # In float64, 1 / 49 * 49 is less than 1.
    assert figures == {"q": {"MRR@49": 1 / 49}}


def test_two_cut_offs_of_one_metric_are_kept_apart():
    run = {"q": {"a": 3.0, "b": 2.0}}

    figures = evaluate_per_query(run, {"q": {"b": 1}}, ["P@1", "P@2"])

    assert figures == {"q": {"P@1": 0.0, "P@2": 0.5}}


def test_queries_come_in_the_order_of_the_qrels_with_missing_ones():
    run = {"q2": {"a": 1.0}, "q1": {"a": 1.0}}
    qrels = {"q3": {"a": 1}, "q1": {"a": 1}, "q2": {"b": 1}}

    figures = evaluate_per_query(run, qrels, ["P@1"])

    assert list(figures.items()) == [
        ("q3", {"P@1": 0.0}),
        ("q1", {"P@1": 1.0}),
        ("q2", {"P@1": 0.0}),
    ]


def test_the_mean_over_queries_is_what_evaluate_returns(collection):
    figures = evaluate_per_query(*collection)

    means = {
        name: np.mean([row[name] for row in figures.values()])
        for name in ("P@1", "MRR@10", "nDCG@10", "R@100")
    }
    assert evaluate(*collection) == pytest.approx(means)


def test_the_caller_keeps_its_run_and_qrels(collection):
    run, qrels = collection
    before = repr((run, qrels))

    evaluate_per_query(run, qrels)

    assert repr((run, qrels)) == before
