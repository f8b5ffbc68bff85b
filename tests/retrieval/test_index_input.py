"""Bad input is refused by both indexes of embeddings, with a clear error."""

import ml_dtypes
import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.retrieval import ExactIndex, ScannIndex

EYE = np.eye(3, dtype=np.float32)
IDS = ["a", "b", "c"]


def changed(row, value):
    rows = EYE.copy()
    rows[row] = value
    return rows


@pytest.fixture(params=[ExactIndex, ScannIndex], ids=["exact", "scann"])
def index_class(request):
    return request.param


@pytest.mark.parametrize(
    ("embeddings", "message"),
    [
        # NaN in the database with a tree aborts the process inside ScaNN.
        (changed(1, np.nan), r"without NaN or Inf.*embeddings\[1\]"),
        (changed(2, np.inf), r"without NaN or Inf.*embeddings\[2\]"),
        (changed(1, -np.inf), "without NaN or Inf"),
        # Inner products of such numbers overflow float32.
        (changed(0, 1e30), r"beyond 1e\+16"),
        # Beyond float32 altogether.
        (EYE.astype(np.float64) * 1e300, "without NaN or Inf"),
        # A zero vector has no direction.
        (changed(1, 0.0), r"non-zero norm.*embeddings\[1\]"),
        (np.zeros((0, 3), np.float32), "at least one document"),
        (np.zeros((3, 0), np.float32), "at least one document"),
        (EYE[0], r"shape \[n, dim\]"),
        (EYE.astype(np.int32), "floating point"),
    ],
    ids=[
        "nan",
        "inf",
        "minus_inf",
        "huge",
        "float64_overflow",
        "zero_row",
        "no_documents",
        "no_dims",
        "one_vector",
        "integers",
    ],
)
def test_unusable_embeddings_are_refused(index_class, embeddings, message):
    with pytest.raises(InvalidInputError, match=message):
        index_class.build(embeddings, IDS)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b", "a"], r"distinct ids.*'a' again at ids\[2\]"),
        (["a", "b"], "2 ids for 3 documents"),
        (["a", "b", 3], r"ids\[2\]=3"),
        (["a", "b", ""], "non-empty str"),
        # A str is a sequence of str, but hardly meant as one.
        ("abc", "one str"),
    ],
    ids=["duplicate", "too_few", "integer", "empty", "one_str"],
)
def test_unusable_ids_are_refused(index_class, ids, message):
    with pytest.raises(InvalidInputError, match=message):
        index_class.build(EYE, ids)


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        # ScaNN answers NaN queries with plausible ids.
        (changed(0, np.nan), r"without NaN or Inf.*queries\[0\]"),
        (EYE[:, :2], r"dim=3.*\(3, 2\)"),
        (EYE[0], r"shape \[n, dim\]"),
    ],
    ids=["nan", "width", "one_vector"],
)
def test_unusable_queries_are_refused(index_class, queries, message):
    index = index_class.build(EYE, IDS)

    with pytest.raises(InvalidInputError, match=message):
        index.search(queries, 1)


def test_k_beyond_the_corpus_names_both_numbers(index_class):
    index = index_class.build(EYE, IDS)

    # ScaNN would return fewer columns without saying so.
    with pytest.raises(InvalidInputError, match="3 documents.*k=4"):
        index.search(EYE, 4)


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_k_that_is_no_positive_int_is_refused(index_class, k):
    index = index_class.build(EYE, IDS)

    with pytest.raises(InvalidInputError, match="at least 1"):
        index.search(EYE, k)


def test_an_empty_batch_of_queries_has_an_empty_result(index_class):
    index = index_class.build(EYE, IDS)

    # ScaNN raises RuntimeError for it.
    scores, ids = index.search(np.zeros((0, 3), np.float32), 2)

    assert scores.shape == ids.shape == (0, 2)
    assert scores.dtype == np.float32


def test_a_zero_query_scores_zero_in_order_of_insertion(index_class):
    index = index_class.build(EYE, IDS)

    scores, ids = index.search(np.zeros((1, 3), np.float32), 3)

    assert scores.tolist() == [[0.0, 0.0, 0.0]]
    assert ids.tolist() == [IDS]


@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: rows.astype(np.float64),
        lambda rows: rows.astype(np.float16),
        lambda rows: rows.astype(ml_dtypes.bfloat16),
        np.asfortranarray,
        lambda rows: np.repeat(rows, 2, axis=0)[::2],
    ],
    ids=["float64", "float16", "bfloat16", "fortran", "strided"],
)
def test_other_layouts_give_the_same_result(index_class, convert):
    # 0.25, 0.5 and 1 are exact in every dtype.
    rows = np.array([[1, 0.25], [0.25, 0.5], [0.5, 1]], np.float32)
    plain = index_class.build(rows, IDS).search(rows, 3)

    scores, ids = index_class.build(convert(rows), IDS).search(convert(rows), 3)

    assert scores.tolist() == plain[0].tolist()
    assert ids.tolist() == plain[1].tolist()


def test_one_document_of_one_dimension_can_be_searched(index_class):
    index = index_class.build(np.array([[2.0]], np.float32), ["only"])

    scores, ids = index.search(np.array([[3.0]], np.float32), 1)

    assert (scores.tolist(), ids.tolist()) == ([[6.0]], [["only"]])
