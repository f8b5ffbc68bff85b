"""Tests of mined texts written as words."""

import pytest

from tf_samtone.trainers.python_words import PythonWords, python_words


@pytest.fixture
def words(tiny_package):
    return python_words([tiny_package])


def test_documents_and_queries_are_plain_words(words):
    texts = [*words.collection.corpus.values()]
    texts += words.collection.queries.values()
    texts += [text for p in words.weak for text in (p.query, p.document)]

    assert [t for t in texts if t != PythonWords.normalise(t)] == []


def test_stages_name_their_pairs(words):
    assert list(words.pairs("train")) == words.collection.pairs("train")
    assert words.pairs("weak") == words.weak


def test_training_texts_hold_no_held_out_text_and_each_text_once(words):
    texts = list(words.training_texts())

    assert len(texts) == len(set(texts))
    for split in ("dev", "test"):
        for pair in words.collection.pairs(split):
            assert pair.query not in texts
            assert pair.document not in texts


def test_counts(words):
    counts = words.counts()

    assert counts["documents"] == 120
    assert counts["weak_pairs"] == len(words.weak)
    assert (
        counts["train_pairs"] + counts["dev_queries"] + counts["test_queries"]
        == 120
    )
