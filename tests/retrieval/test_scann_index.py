"""ScaNN search: exact where it must be, guarded where ScaNN is not."""

import builtins
import importlib
import logging

import numpy as np
import pytest

from tf_samtone.errors import (
    InvalidInputError,
    MismatchError,
    MissingDependencyError,
)
from tf_samtone.retrieval import ExactIndex, ScannIndex


def exhaustive(embeddings, ids, method):
    """Build an index that looks at every document."""
    if method != "tree":
        return ScannIndex.build(
            embeddings,
            ids,
            method=method,
            reordering_num_neighbors=len(ids),
        )
    return ScannIndex.build(
        embeddings,
        ids,
        num_leaves=17,
        num_leaves_to_search=17,
        reordering_num_neighbors=len(ids),
    )


@pytest.mark.parametrize("method", ["brute_force", "hash", "tree"])
@pytest.mark.parametrize("k", [1, 10, 300])
def test_an_exhaustive_search_is_exact(corpus, queries, brute_force, method, k):
    scores, ids = exhaustive(*corpus, method).search(queries, k)

    best, names = brute_force(*corpus, queries, k)
    np.testing.assert_array_equal(ids, names)
    np.testing.assert_allclose(scores, best, atol=1e-6)


def test_scores_are_best_first_and_typed(corpus, queries):
    scores, ids = ScannIndex.build(*corpus).search(queries, 5)

    assert scores.dtype == np.float32
    assert {type(name) for name in ids.flat} == {str}
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("k", [50, 299, 300])
def test_k_beyond_the_visited_leaves_gives_k_real_results(corpus, queries, k):
    index = ScannIndex.build(*corpus, num_leaves=17, num_leaves_to_search=1)

    # One leaf holds about 18 documents; ScaNN pads with position 0 and NaN.
    scores, ids = index.search(queries, k)

    assert {len(set(row)) for row in ids} == {k}
    embeddings = dict(zip(corpus[1], corpus[0], strict=True))
    expected = [
        [query @ embeddings[name] for name in row]
        for query, row in zip(queries, ids, strict=True)
    ]
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_k_beyond_the_reordering_gives_k_results(corpus, queries):
    index = ScannIndex.build(*corpus, method="hash", reordering_num_neighbors=5)

    _, ids = index.search(queries, 200)

    assert {len(set(row)) for row in ids} == {200}


@pytest.mark.parametrize(
    ("k", "expected"), [(1, 25), (2, 25), (3, 30), (200, 300)]
)
def test_ten_times_k_candidates_are_rescored(
    corpus, queries, monkeypatch, k, expected
):
    index = ScannIndex.build(
        *corpus, method="hash", reordering_num_neighbors=25
    )
    asked = []
    search = index._searcher.search_batched_parallel

    def spy(rows, **arguments):
        asked.append(arguments["pre_reorder_num_neighbors"])
        return search(rows, **arguments)

    monkeypatch.setattr(index._searcher, "search_batched_parallel", spy)
    index.search(queries, k)

    # At least the 25 of the build, at most the 300 documents.
    assert asked == [expected]


def test_more_leaves_at_search_find_more(corpus, queries):
    index = ScannIndex.build(*corpus, num_leaves=17, num_leaves_to_search=1)
    best, _ = ExactIndex.build(*corpus).search(queries, 5)

    few, _ = index.search(queries, 5)
    every, _ = index.search(queries, 5, num_leaves_to_search=17)

    assert (few.sum() < best.sum()) and (few <= every + 1e-6).all()
    np.testing.assert_allclose(every, best, atol=1e-6)


def test_every_build_gives_the_same_files(tmp_path):
    rows = np.random.default_rng(0).normal(size=(3000, 16)).astype("float32")
    ids = [str(i) for i in range(3000)]

    # With ScaNN's own default, random_init=True, most of them differ.
    folders = [tmp_path / name for name in "abcd"]
    for folder in folders:
        ScannIndex.build(rows, ids, num_leaves=200).save(folder)

    manifests = [(path / "manifest.json").read_bytes() for path in folders]
    assert len(set(manifests)) == 1


def test_equal_documents_come_in_order_of_insertion(corpus):
    embeddings, ids = corpus
    rows = np.repeat(embeddings[:1], 300, axis=0)
    rows[7] = embeddings[1]

    _, names = exhaustive(rows, ids, "hash").search(embeddings[1:2], 300)

    assert names[0].tolist() == ["d7", *(d for d in ids if d != "d7")]


def test_a_collapsed_corpus_is_reported(corpus, caplog):
    embeddings, ids = corpus
    rows = np.repeat(embeddings[:1], 300, axis=0)

    with caplog.at_level(logging.WARNING, "tf_samtone"):
        ScannIndex.build(rows, ids)

    assert "collapsed" in caplog.text


@pytest.mark.parametrize(
    ("num_docs", "expected"),
    [(19_999, "brute_force"), (20_000, "hash")],
)
def test_the_method_follows_the_size_of_the_corpus(num_docs, expected):
    rows = np.random.default_rng(0).normal(size=(num_docs, 2)).astype("float32")

    index = ScannIndex.build(rows, [str(i) for i in range(num_docs)])

    assert index.settings.method == expected
    assert index.is_exact == (expected == "brute_force")


def test_default_leaves_are_the_square_root_of_the_corpus(corpus):
    settings = ScannIndex.build(*corpus, method="tree").settings

    # sqrt(300) = 17.3; a tenth of 17, rounded up, is 2.
    assert (settings.num_leaves, settings.num_leaves_to_search) == (17, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "faiss"}, "brute_force.*hash.*tree.*'faiss'"),
        # ScaNN: RuntimeError.
        ({"num_leaves": 301}, "at least 301 documents"),
        ({"num_leaves": 0}, "num_leaves=0"),
        ({"num_leaves": 4, "num_leaves_to_search": 5}, "at most num_leaves=4"),
        ({"method": "hash", "num_leaves": 4}, "only with method='tree'"),
        ({"num_leaves_to_search": 2}, "only with method='tree'"),
        ({"reordering_num_neighbors": 0}, "reordering_num_neighbors=0"),
    ],
    ids=[
        "method",
        "too_many_leaves",
        "no_leaves",
        "more_searched_than_there_are",
        "leaves_without_tree",
        "searched_leaves_without_tree",
        "no_reordering",
    ],
)
def test_impossible_settings_are_refused(corpus, arguments, message):
    with pytest.raises(InvalidInputError, match=message):
        ScannIndex.build(*corpus, **arguments)


def test_a_tree_on_a_tiny_corpus_is_refused(corpus):
    embeddings, ids = corpus

    # The quantiser trains 16 centres; ScaNN: RuntimeError.
    with pytest.raises(InvalidInputError, match="at least 16 documents"):
        ScannIndex.build(embeddings[:15], ids[:15], num_leaves=2)


def test_leaves_at_search_are_refused_without_a_tree(corpus, queries):
    index = ScannIndex.build(*corpus)

    with pytest.raises(InvalidInputError, match="only with method='tree'"):
        index.search(queries, 1, num_leaves_to_search=2)


def test_recall_is_the_share_of_the_exact_results(corpus, queries):
    exact = ExactIndex.build(*corpus)
    index = ScannIndex.build(*corpus, num_leaves=17, num_leaves_to_search=1)

    recall = index.recall_against(exact, queries, 10)

    # No ties here, so counting the ids is the definition.
    found = index.search(queries, 10)[1]
    best = exact.search(queries, 10)[1]
    shares = [len({*a} & {*b}) / 10 for a, b in zip(found, best, strict=True)]
    assert recall == pytest.approx(np.mean(shares))
    assert 0 < recall < 1


def test_recall_of_brute_force_is_one(corpus, queries):
    index = ScannIndex.build(*corpus)

    assert index.recall_against(ExactIndex.build(*corpus), queries, 10) == 1


def test_recall_against_other_documents_is_refused(corpus, queries):
    embeddings, ids = corpus
    index = ScannIndex.build(*corpus)

    with pytest.raises(MismatchError, match="same documents"):
        index.recall_against(
            ExactIndex.build(embeddings[:9], ids[:9]), queries, 1
        )


def test_recall_without_queries_is_refused(corpus, queries):
    index = ScannIndex.build(*corpus)

    # There is nothing to take the mean of.
    with pytest.raises(InvalidInputError, match="at least one query"):
        index.recall_against(ExactIndex.build(*corpus), queries[:0], 1)


def test_a_missing_scann_is_named(corpus, monkeypatch):
    def fail(name):
        raise ImportError("no scann here")

    monkeypatch.setattr(importlib, "import_module", fail)

    # ScaNN exists for Linux only.
    with pytest.raises(MissingDependencyError, match="pip install scann"):
        ScannIndex.build(*corpus)


def test_scann_is_never_given_document_ids(corpus, monkeypatch, tmp_path):
    opened = []
    real_open = builtins.open

    def spy(path, *args, **kwargs):
        opened.append(str(path))
        return real_open(path, *args, **kwargs)

    index = ScannIndex.build(*corpus, num_leaves=4)
    monkeypatch.setattr(builtins, "open", spy)
    index.save(tmp_path / "index")

    assert index._searcher.docids is None
    assert not [path for path in opened if path.endswith(".pkl")]
