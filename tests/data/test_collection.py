"""Collections in memory."""

import pytest

from tf_samtone.data import Collection, Pair
from tf_samtone.errors import DataError, InvalidInputError

CORPUS = {"d1": "one", "d2": "two", "d3": "three"}
QUERIES = {"q1": "first", "q2": "second"}
QRELS = {"train": {"q2": {"d3": 1, "d1": 0}, "q1": {"d2": 1, "d1": 2}}}


def test_pairs_are_the_positive_judgments_in_order():
    pairs = Collection(CORPUS, QUERIES, QRELS).pairs("train")

    assert pairs == [
        Pair("second", "three", "q2", "d3"),
        Pair("first", "two", "q1", "d2"),
        Pair("first", "one", "q1", "d1"),
    ]


def test_evaluation_queries_are_the_judged_ones_in_order():
    ids, texts = Collection(CORPUS, QUERIES, QRELS).evaluation_queries("train")

    assert ids == ["q2", "q1"]
    assert texts == ["second", "first"]


@pytest.mark.parametrize("method", ["pairs", "evaluation_queries"])
def test_an_unknown_split_lists_the_known_ones(method):
    collection = Collection(CORPUS, QUERIES, QRELS)

    with pytest.raises(InvalidInputError, match=r"\['train'\].*'dev'"):
        getattr(collection, method)("dev")


@pytest.mark.parametrize(
    ("judgments", "message"),
    [
        ({"q9": {"d1": 1}}, "query id 'q9'"),
        ({"q1": {"d9": 1}}, "document id 'd9'"),
    ],
    ids=["query", "document"],
)
def test_a_judgment_of_an_unknown_id_is_refused(judgments, message):
    with pytest.raises(DataError, match=message):
        Collection(CORPUS, QUERIES, {"test": judgments})
