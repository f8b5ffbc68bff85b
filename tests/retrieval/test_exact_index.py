"""Exact search against a float64 full sort."""

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.retrieval import ExactIndex


@pytest.mark.parametrize("k", [1, 10, 300])
def test_search_agrees_with_a_float64_full_sort(
    corpus, queries, brute_force, k
):
    index = ExactIndex.build(*corpus)

    scores, ids = index.search(queries, k)

    best, names = brute_force(*corpus, queries, k)
    np.testing.assert_array_equal(ids, names)
    np.testing.assert_array_equal(scores, best.astype(np.float32))


def test_scores_are_best_first_and_typed(corpus, queries):
    scores, ids = ExactIndex.build(*corpus).search(queries, 5)

    assert scores.dtype == np.float32
    assert {type(name) for name in ids.flat} == {str}
    assert (np.diff(scores, axis=1) <= 0).all()


def test_inner_products_by_hand():
    index = ExactIndex.build(
        np.array([[1, 0], [0, 2], [3, 1]], np.float32), ["x", "y", "z"]
    )

    scores, ids = index.search(np.array([[1, 2]], np.float32), 3)

    # 1*1+2*0 = 1, 1*0+2*2 = 4, 1*3+2*1 = 5.
    assert scores.tolist() == [[5.0, 4.0, 1.0]]
    assert ids.tolist() == [["z", "y", "x"]]


def test_equal_documents_come_in_order_of_insertion(corpus, queries):
    embeddings, _ = corpus
    # 150 vectors, each three times; a float32 matmul may round the copies
    # differently, depending on their column.
    rows = np.tile(embeddings[:150], (3, 1))
    ids = [f"{copy}-{i}" for copy in range(3) for i in range(150)]

    scores, names = ExactIndex.build(rows, ids).search(queries, 30)

    triples = names.reshape(7, 10, 3)
    copies = [[name.split("-")[0] for name in t] for t in triples[0]]
    assert copies == [["0", "1", "2"]] * 10
    grouped = scores.reshape(7, 10, 3)
    assert (grouped == grouped[:, :, :1]).all()


def test_a_tie_at_the_cut_keeps_the_earliest_document():
    index = ExactIndex.build(
        np.ones((50, 4), np.float32), [f"d{i}" for i in range(50)]
    )

    _, ids = index.search(np.ones((1, 4), np.float32), 3)

    assert ids.tolist() == [["d0", "d1", "d2"]]


@pytest.mark.parametrize("seed", [0, 3, 5, 8])
def test_rounding_does_not_order_equal_documents(seed):
    generator = np.random.default_rng(seed)
    rows = np.repeat(generator.normal(size=(1, 100)), 1003, axis=0)
    index = ExactIndex.build(rows, [f"d{i}" for i in range(1003)])

    # For one query, a float32 matmul rounds the last rows differently: with
    # OpenBLAS, document 1002 or 1000 wins for three of these seeds.
    _, ids = index.search(generator.normal(size=(1, 100)), 2)

    assert ids.tolist() == [["d0", "d1"]]


@pytest.mark.parametrize("batch_size", [1, 2, 7, 1000])
def test_the_result_does_not_depend_on_the_batch_size(
    corpus, queries, batch_size
):
    index = ExactIndex.build(*corpus)
    scores, ids = index.search(queries, 20)

    other_scores, other_ids = index.search(queries, 20, batch_size=batch_size)

    np.testing.assert_array_equal(other_scores, scores)
    np.testing.assert_array_equal(other_ids, ids)


def test_a_batch_size_below_one_is_refused(corpus, queries):
    index = ExactIndex.build(*corpus)

    with pytest.raises(InvalidInputError, match="batch_size=0"):
        index.search(queries, 1, batch_size=0)


def test_large_norms_keep_the_right_order(brute_force):
    # Norms from 1e-6 to 1e6: the rounding slack must follow the largest.
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(200, 8)) * np.logspace(-6, 6, 200)[:, None]
    rows = rows.astype(np.float32)
    ids = [str(i) for i in range(200)]
    queries = generator.normal(size=(3, 8)).astype(np.float32)

    _, found = ExactIndex.build(rows, ids).search(queries, 50)

    _, names = brute_force(rows, ids, queries, 50)
    np.testing.assert_array_equal(found, names)


def test_attributes_describe_the_index(corpus):
    index = ExactIndex.build(*corpus, model_fingerprint="f00")

    assert (len(index), index.dim, index.model_fingerprint) == (300, 16, "f00")
    assert index.ids == corpus[1]
    assert index.is_exact
