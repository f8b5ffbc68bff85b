"""BM25 against the formula, and its corner cases."""

import math
import pathlib
import sys
import types

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError, MissingDependencyError
from tf_samtone.retrieval import BM25Index

TEXTS = [
    "The quick brown fox jumps over the lazy dog",
    "A quick brown dog outpaces a quick fox",
    "Whales are mammals that live in the sea",
    "",
    "Naïve café, foxes and FOX-hunting: the fox!",
]
IDS = ["d0", "d1", "d2", "d3", "d4"]


def tokens(text, stop_words):
    """Split like the index: words of two or more characters."""
    cleaned = "".join(c if c.isalnum() else " " for c in text.lower())
    return [w for w in cleaned.split() if len(w) > 1 and w not in stop_words]


def lucene_bm25(query, stop_words=(), k1=1.5, b=0.75):
    """Score all TEXTS with Lucene's BM25, in float64."""
    documents = [tokens(text, stop_words) for text in TEXTS]
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        total = 0.0
        for word in tokens(query, stop_words):
            matching = sum(word in other for other in documents)
            if not matching:
                continue
            idf = math.log(
                1 + (len(documents) - matching + 0.5) / (matching + 0.5)
            )
            count = document.count(word)
            length = 1 - b + b * len(document) / mean
            total += idf * count / (count + k1 * length)
        scores.append(total)
    return np.array(scores)


@pytest.mark.parametrize(
    "query",
    ["fox", "quick quick dog", "café FOX", "the sea", "fox unknownword"],
    ids=["one_word", "repeated", "unicode", "with_the", "with_unknown"],
)
def test_scores_are_those_of_the_formula(query):
    index = BM25Index.build(TEXTS, IDS, stop_words=None)

    scores, ids = index.search([query], 5)

    expected = lucene_bm25(query)
    order = np.argsort(-expected.round(6), kind="stable")
    assert ids[0].tolist() == [IDS[i] for i in order]
    np.testing.assert_allclose(scores[0], expected[order], atol=1e-6)


def test_english_stop_words_are_ignored_by_default():
    index = BM25Index.build(TEXTS, IDS)

    scores, ids = index.search(["the in and fox"], 5)

    expected = lucene_bm25("fox", stop_words=index.stop_words)
    assert "the" in index.stop_words
    np.testing.assert_allclose(
        scores[0], np.sort(expected)[::-1], rtol=1e-5, atol=1e-7
    )


def test_own_stop_words_replace_the_english_ones():
    index = BM25Index.build(TEXTS, IDS, stop_words=["fox"])

    assert index.search(["fox"], 1)[0].tolist() == [[0.0]]
    assert index.search(["the"], 1)[0][0, 0] > 0


@pytest.mark.parametrize(
    "query", ["", "the", "zebra", "?!"], ids=["empty", "stop", "new", "marks"]
)
def test_a_query_without_known_word_returns_the_first_k_with_score_zero(query):
    index = BM25Index.build(TEXTS, IDS)

    scores, ids = index.search(["sea", query, "sea"], 3)

    assert scores[1].tolist() == [0.0, 0.0, 0.0]
    assert ids[1].tolist() == ["d0", "d1", "d2"]
    assert ids[[0, 2], 0].tolist() == ["d2", "d2"]


def test_an_empty_batch_of_queries_has_an_empty_result():
    scores, ids = BM25Index.build(TEXTS, IDS).search([], 2)

    assert scores.shape == ids.shape == (0, 2)


def test_equal_texts_come_in_order_of_insertion():
    index = BM25Index.build(["red fox"] * 40, [f"d{i}" for i in range(40)])

    _, ids = index.search(["fox"], 10)

    assert ids[0].tolist() == [f"d{i}" for i in range(10)]


def test_k_beyond_the_corpus_names_both_numbers():
    index = BM25Index.build(TEXTS, IDS)

    with pytest.raises(InvalidInputError, match="5 documents.*k=6"):
        index.search(["fox"], 6)


@pytest.mark.parametrize(
    ("texts", "ids", "message"),
    [
        ([], [], "0 texts"),
        # Nothing can be found in stop words.
        (["the", "", "a"], ["a", "b", "c"], "3 texts without any"),
        (["x y", b"bytes"], ["a", "b"], r"texts\[1\] of type bytes"),
        ("one text", ["a"], "one str"),
        (["red", "fox"], ["a", "a"], "distinct ids"),
        (["red", "fox"], ["a"], "1 ids for 2 documents"),
    ],
    ids=["empty", "only_stop_words", "bytes", "one_str", "duplicate", "count"],
)
def test_an_unusable_corpus_is_refused(texts, ids, message):
    with pytest.raises(InvalidInputError, match=message):
        BM25Index.build(texts, ids)


def test_one_query_must_be_in_a_list():
    index = BM25Index.build(TEXTS, IDS)

    # Otherwise each letter would be a query.
    with pytest.raises(InvalidInputError, match="queries='fox'"):
        index.search("fox", 1)


def test_an_unknown_language_of_stop_words_is_refused():
    with pytest.raises(InvalidInputError, match="'klingon'"):
        BM25Index.build(TEXTS, IDS, stop_words="klingon")


def test_the_saved_folder_holds_no_text(tmp_path):
    BM25Index.build(TEXTS, IDS).save(tmp_path / "index")

    files = [p for p in pathlib.Path(tmp_path).rglob("*") if p.is_file()]
    contents = b"".join(p.read_bytes() for p in files)
    assert b"quick brown" not in contents
    assert b"quick" in contents


def test_saved_stop_words_are_used_after_loading(tmp_path):
    BM25Index.build(TEXTS, IDS, stop_words=["fox"]).save(tmp_path / "index")

    loaded = BM25Index.load(tmp_path / "index")

    assert loaded.stop_words == ["fox"]
    assert loaded.search(["fox"], 1)[0].tolist() == [[0.0]]


@pytest.fixture
def stemmer(monkeypatch):
    """Install a PyStemmer that cuts words to four letters."""

    class Cut:
        def __init__(self, language):
            if language != "english":
                raise KeyError(language)

        def stemWords(self, words):  # noqa: N802 - the name of PyStemmer
            return [word[:4] for word in words]

    module = types.ModuleType("Stemmer")
    module.Stemmer = Cut
    module.algorithms = lambda: ["english"]
    monkeypatch.setitem(sys.modules, "Stemmer", module)


def test_a_stemmer_is_applied_before_and_after_loading(stemmer, tmp_path):
    index = BM25Index.build(["hunting"], ["a"], stemmer="english")
    index.save(tmp_path / "index")

    loaded = BM25Index.load(tmp_path / "index")

    assert index.search(["hunted"], 1)[0][0, 0] > 0
    assert loaded.search(["hunted"], 1)[0][0, 0] > 0
    assert loaded.stemmer == "english"


def test_an_unknown_language_of_the_stemmer_is_refused(stemmer):
    with pytest.raises(InvalidInputError, match="english.*'klingon'"):
        BM25Index.build(TEXTS, IDS, stemmer="klingon")


@pytest.mark.parametrize(
    ("module", "arguments"),
    [("bm25s", {}), ("Stemmer", {"stemmer": "english"})],
)
def test_a_missing_package_is_named(monkeypatch, module, arguments):
    # None in sys.modules makes the import fail.
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(MissingDependencyError, match="pip install"):
        BM25Index.build(TEXTS, IDS, **arguments)
