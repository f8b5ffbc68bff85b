"""Search results become runs."""

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.retrieval import ExactIndex, to_run

IDS = np.array([["a", "b"], ["b", "a"]], dtype=object)


def test_rows_become_dicts_of_python_floats():
    run = to_run(["q1", "q2"], np.array([[2, 1], [4, 3]], np.float32), IDS)

    assert run == {"q1": {"a": 2.0, "b": 1.0}, "q2": {"b": 4.0, "a": 3.0}}
    assert {type(s) for row in run.values() for s in row.values()} == {float}


def test_the_result_of_a_search_fits():
    index = ExactIndex.build(np.eye(2, dtype=np.float32), ["a", "b"])

    run = to_run(["q"], *index.search(np.array([[3.0, 4.0]]), 2))

    assert run == {"q": {"b": 4.0, "a": 3.0}}


@pytest.mark.parametrize(
    ("query_ids", "scores", "ids", "message"),
    [
        (["q1"], np.ones((2, 2)), IDS, "1 query ids for 2 rows"),
        (["q", "q"], np.ones((2, 2)), IDS, "duplicate at query 'q'"),
        (["q1", "q2"], np.ones((2, 3)), IDS, "one shape"),
        (["q1", "q2"], np.ones(2), IDS[0], "one shape"),
        (["q1", "q2"], np.full((2, 2), np.nan), IDS, "finite scores"),
        (["q"], np.ones((1, 2)), np.array([["a", "a"]]), "duplicate"),
    ],
    ids=["count", "same_query", "shape", "rank", "nan", "same_document"],
)
def test_unusable_results_are_refused(query_ids, scores, ids, message):
    with pytest.raises(InvalidInputError, match=message):
        to_run(query_ids, scores, ids)
