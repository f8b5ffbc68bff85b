"""Fusion of runs, by hand."""

import math

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.retrieval import reciprocal_rank_fusion, weighted_fusion

RUN_A = {"q1": {"a": 3.0, "b": 2.0, "c": 1.0}, "q2": {"a": 1.0}}
RUN_B = {"q1": {"c": 30.0, "d": 10.0}, "q3": {"d": 5.0, "e": 4.0}}


def test_reciprocal_ranks_are_summed():
    fused = reciprocal_rank_fusion([RUN_A, RUN_B])

    # Ranks of q1: a 1, b 2, c 3 in A; c 1, d 2 in B. Missing adds nothing.
    assert fused["q1"] == pytest.approx(
        {"a": 1 / 61, "b": 1 / 62, "c": 1 / 63 + 1 / 61, "d": 1 / 62}
    )


def test_queries_of_one_run_alone_are_kept():
    fused = reciprocal_rank_fusion([RUN_A, RUN_B])

    assert fused["q2"] == pytest.approx({"a": 1 / 61})
    assert fused["q3"] == pytest.approx({"d": 1 / 61, "e": 1 / 62})


def test_k_and_weights_change_the_scores():
    fused = reciprocal_rank_fusion([RUN_A, RUN_B], k=1, weights=[2, 0.5])

    assert fused["q1"] == pytest.approx(
        {"a": 2 / 2, "b": 2 / 3, "c": 2 / 4 + 0.5 / 2, "d": 0.5 / 3}
    )


def test_tied_scores_are_ranked_by_document_id_descending():
    fused = reciprocal_rank_fusion([{"q": {"a": 1.0, "c": 1.0, "b": 1.0}}])

    assert fused["q"] == pytest.approx({"c": 1 / 61, "b": 1 / 62, "a": 1 / 63})


@pytest.mark.parametrize(
    ("runs", "arguments", "message"),
    [
        ([], {}, "non-empty list of runs"),
        # A run is a dict; iterating it would give query ids.
        (RUN_A, {}, "non-empty list of runs.*dict"),
        ([RUN_A], {"k": -1}, "k=-1"),
        ([RUN_A], {"k": math.nan}, "k=nan"),
        ([RUN_A], {"weights": [1, 1]}, "1 weights"),
        ([RUN_A], {"weights": [-1]}, "at least 0"),
        ([RUN_A], {"weights": [0]}, "not all 0"),
        ([{"q": {"a": math.nan}}], {}, "score=nan of document 'a'"),
    ],
    ids=[
        "no_runs",
        "one_run",
        "negative_k",
        "nan_k",
        "count",
        "negative",
        "all_zero",
        "nan_score",
    ],
)
def test_unusable_input_of_rank_fusion_is_refused(runs, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        reciprocal_rank_fusion(runs, **arguments)


def test_min_max_fusion_by_hand():
    fused = weighted_fusion(RUN_A, RUN_B, 0.75)

    # A: a 1, b 0.5, c 0; B: c 1, d 0. Missing: the lowest, 0.
    assert fused["q1"] == pytest.approx(
        {"a": 0.75, "b": 0.375, "c": 0.25, "d": 0.0}
    )
    assert fused["q3"] == pytest.approx({"d": 0.25, "e": 0.0})


def test_z_score_fusion_by_hand():
    fused = weighted_fusion(RUN_A, RUN_B, 0.5, normalisation="z_score")

    # A: mean 2, deviation sqrt(2/3), so a 1.2247, b 0, c -1.2247.
    # B: mean 20, deviation 10, so c 1, d -1. Missing: the lowest.
    z = math.sqrt(1.5)
    assert fused["q1"] == pytest.approx(
        {
            "a": 0.5 * z - 0.5,
            "b": -0.5,
            "c": -0.5 * z + 0.5,
            "d": -0.5 * z - 0.5,
        }
    )


@pytest.mark.parametrize("normalisation", ["min_max", "z_score"])
def test_a_list_of_equal_scores_adds_nothing(normalisation):
    # What a keyword index returns for a query without a known word.
    equal = {"q": {"x": 0.0, "y": 0.0}}
    other = {"q": {"a": 2.0, "b": 1.0, "x": 1.5}}

    fused = weighted_fusion(equal, other, 0.5, normalisation=normalisation)

    ranked = sorted(fused["q"], key=fused["q"].get, reverse=True)
    assert ranked[:2] == ["a", "x"]
    assert fused["q"]["y"] == fused["q"]["b"] == min(fused["q"].values())


@pytest.mark.parametrize(
    ("weight", "run"), [(1, RUN_A), (0, RUN_B)], ids=["a", "b"]
)
def test_a_full_weight_keeps_the_order_of_that_run(weight, run):
    fused = weighted_fusion(RUN_A, RUN_B, weight)["q1"]

    ours = [doc for doc in sorted(fused, key=fused.get, reverse=True)]
    assert ours[0] == max(run["q1"], key=run["q1"].get)


def test_runs_are_not_changed():
    before = {query: dict(row) for query, row in RUN_A.items()}

    weighted_fusion(RUN_A, RUN_B, 0.5)
    reciprocal_rank_fusion([RUN_A, RUN_B])

    assert before == RUN_A


@pytest.mark.parametrize("weight", [-0.1, 1.1, math.nan])
def test_a_weight_outside_of_0_to_1_is_refused(weight):
    with pytest.raises(InvalidInputError, match=f"weight={weight}"):
        weighted_fusion(RUN_A, RUN_B, weight)


def test_an_unknown_normalisation_is_refused():
    with pytest.raises(InvalidInputError, match="min_max.*z_score.*'rank'"):
        weighted_fusion(RUN_A, RUN_B, 0.5, normalisation="rank")


def test_nan_scores_are_refused():
    with pytest.raises(InvalidInputError, match="document 'a', query 'q'"):
        weighted_fusion({"q": {"a": math.inf}}, RUN_B, 0.5)
