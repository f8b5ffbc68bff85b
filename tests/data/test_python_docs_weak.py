"""Weak pairs of Python sources."""

import pytest

from tf_samtone.data import Pair, read_python_docs, weak_pairs
from tf_samtone.data.python_docs_weak import WEAK_KINDS
from tf_samtone.errors import InvalidInputError

# By `split_of_module`: pkg.m0 is train, pkg.m6 is dev, pkg.m15 is test.
TRAIN = '''
def countWords(text, sep=None):
    """Count the words of a text.

    Words are separated by `sep`. Empty words count too."""
    # Split the text at every separator.
    words = text.split(sep)
    return len(words)

def undocumented(alpha, beta):
    return alpha + beta

def copied():
    """Share one paragraph with a held-out file."""
    return "train code"
'''
DEV = '''
def develop():
    """Share one paragraph with a held-out file."""
    # Never read this development comment.
    return "development code"
'''
TEST = '''
class Secret:
    """Keep this secret from training."""
    def reveal(self):
        """Reveal it only in the test."""
        # Never read this test comment.
        return "secret code"
'''


@pytest.fixture
def roots(tmp_path):
    (tmp_path / "m0.py").write_text(TRAIN)
    (tmp_path / "m6.py").write_text(DEV)
    (tmp_path / "m15.py").write_text(TEST)
    return {"pkg": tmp_path}


def mined(roots, kind):
    pairs = weak_pairs(roots=roots, kinds=[kind])
    return [(pair.query, pair.document) for pair in pairs]


def test_comment_to_code(roots):
    assert mined(roots, "comment_to_code") == [
        (
            "Split the text at every separator.",
            "words = text.split(sep)\nreturn len(words)",
        )
    ]


def test_name_to_code_leaves_the_name_out_of_the_document(roots):
    pairs = dict(mined(roots, "name_to_code"))

    assert set(pairs) == {"count words", "undocumented", "copied"}
    assert pairs["undocumented"] == "alpha, beta\nreturn alpha + beta"


def test_name_to_docstring(roots):
    pairs = dict(mined(roots, "name_to_docstring"))

    assert pairs["count words"].startswith("Count the words of a text.\n")


def test_sentence_to_code_takes_every_sentence(roots):
    pairs = mined(roots, "sentence_to_code")

    assert [query for query, _ in pairs] == [
        "Count the words of a text.",
        "Words are separated by `sep`.",
        "Empty words count too.",
    ]
    assert {document.split("(")[0] for _, document in pairs} == {
        "pkg.m0.countWords"
    }


def test_sentence_to_rest_leaves_the_sentence_out(roots):
    pairs = dict(mined(roots, "sentence_to_rest"))

    assert pairs["Words are separated by `sep`."] == (
        "Count the words of a text. Empty words count too."
    )


@pytest.mark.parametrize("kind", WEAK_KINDS)
def test_nothing_of_a_held_out_file_is_mined(roots, kind):
    text = " ".join(f"{a} {b}" for a, b in mined(roots, kind)).lower()

    assert text
    assert "secret" not in text
    assert "development" not in text
    assert "reveal" not in text


def test_held_out_paragraph_is_no_query_even_from_a_training_file(roots):
    queries = {pair.query for pair in weak_pairs(roots=roots)}

    assert "Share one paragraph with a held-out file." not in queries


def test_queries_of_dev_and_test_are_absent_from_weak_pairs(roots):
    collection = read_python_docs(roots=roots)
    queries = {pair.query for pair in weak_pairs(roots=roots)}

    assert len(collection.qrels["test"]) == 1
    assert queries.isdisjoint(collection.evaluation_queries("test")[1])
    assert queries.isdisjoint(collection.evaluation_queries("dev")[1])


def test_all_kinds_together_keep_each_pair_once(roots):
    pairs = weak_pairs(roots=roots)

    assert len(pairs) == len(set(pairs))
    assert set(pairs) == {
        Pair(*pair) for kind in WEAK_KINDS for pair in mined(roots, kind)
    }


def test_two_readings_are_equal(roots):
    assert weak_pairs(roots=roots) == weak_pairs(roots=roots)


def test_huge_documents_are_cut(tmp_path):
    (tmp_path / "m0.py").write_text(
        "# Fill a table with numbers.\n"
        f"table = [{', '.join(map(str, range(5000)))}]\n"
    )

    pairs = weak_pairs(roots={"pkg": tmp_path}, kinds=["comment_to_code"])

    assert len(pairs[0].document) == 1000


@pytest.mark.parametrize("kinds", [[], ["comment"]], ids=["none", "unknown"])
def test_wrong_kinds_list_the_known_ones(roots, kinds):
    # A misspelt kind would otherwise silently mine nothing.
    with pytest.raises(InvalidInputError, match="'sentence_to_rest'"):
        weak_pairs(roots=roots, kinds=kinds)
