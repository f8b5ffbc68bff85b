"""Tests of the lengths of texts in tokens."""

import pytest

from tf_samtone.text import TextPreprocessor, load_tokenizer
from tf_samtone.trainers.token_statistics import TokenStatistics


@pytest.fixture(scope="module")
def preprocessor(preset_folder):
    tokenizer = load_tokenizer(preset_folder / "spiece.model")
    return TextPreprocessor(tokenizer, 4)


def _lengths(preprocessor, texts):
    tokenizer = preprocessor.tokenizer
    # With the end of text.
    return [len(tokenizer(text)) + 1 for text in texts]


def test_lengths_are_those_before_the_cut(preprocessor):
    texts = ["whale", "a whale and a violin", "", "who knows paris"]
    lengths = _lengths(preprocessor, texts)
    found = TokenStatistics.of_texts(texts, preprocessor)
    assert found.mean == pytest.approx(sum(lengths) / 4)
    assert found.share_cut == sum(n > 4 for n in lengths) / 4
    assert found.mean_kept == sum(min(n, 4) for n in lengths) / 4


def test_one_text_in_twenty_is_longer_than_the_percentile(preprocessor):
    texts = [""] * 95 + ["a whale and a violin"] * 5
    found = TokenStatistics.of_texts(texts, preprocessor)
    assert found.percentile_95 == pytest.approx(1, abs=1)


def test_a_sample_is_spread_over_all_texts(preprocessor):
    texts = [""] * 500 + ["a whale and a violin"] * 500
    found = TokenStatistics.of_texts(texts, preprocessor, sample_size=10)
    assert found.texts == 10
    assert found.share_cut == 0.5
