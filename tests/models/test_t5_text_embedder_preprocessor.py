"""Tests of texts to the inputs of a text embedder."""

import pathlib

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import T5TextEmbedderPreprocessor
from tf_samtone.text import load_tokenizer

VOCABULARY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"
TEXTS = ["a cat", "", "the small dog reads a long book at night"]
END = 1


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(VOCABULARY)


def make(tokenizer, **options) -> T5TextEmbedderPreprocessor:
    return T5TextEmbedderPreprocessor(
        tokenizer, **{"sequence_length": 9, "prefix": "ask: ", **options}
    )


def by_sentencepiece(texts, length=9, prefix="ask: ") -> np.ndarray:
    """Return rows of `tokens </s>`, cut before the end and padded with 0."""
    processor = sentencepiece.SentencePieceProcessor(str(VOCABULARY))
    rows = np.zeros((len(texts), length), np.int32)
    for row, text in zip(rows, texts, strict=True):
        tokens = [*processor.encode(prefix + text)[: length - 1], END]
        row[: len(tokens)] = tokens
    return rows


def test_rows_are_those_of_sentencepiece_and_an_end(tokenizer):
    features = make(tokenizer)(TEXTS)

    expected = by_sentencepiece(TEXTS)
    np.testing.assert_array_equal(features["token_ids"], expected)
    np.testing.assert_array_equal(features["padding_mask"], expected > 0)
    assert {f.dtype for f in features.values()} == {tf.int32}


def test_there_is_no_start_token(tokenizer):
    features = make(tokenizer, prefix="")([""])

    assert features["token_ids"].numpy().tolist() == [[END] + [0] * 8]


@pytest.mark.parametrize("text", ["a cat", tf.constant("a cat"), b"a cat"])
def test_one_text_gives_one_row(tokenizer, text):
    features = make(tokenizer)(text)

    np.testing.assert_array_equal(
        features["token_ids"], by_sentencepiece(["a cat"])[0]
    )


def test_it_works_inside_a_dataset(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS).batch(3)

    (features,) = dataset.map(make(tokenizer))

    np.testing.assert_array_equal(
        features["token_ids"], by_sentencepiece(TEXTS)
    )


def test_labels_and_sample_weights_pass_through(tokenizer):
    preprocessor = make(tokenizer)

    features, labels = preprocessor(TEXTS, [1, 2, 3])
    *_, weights = preprocessor(TEXTS, [1, 2, 3], [4, 5, 6])

    assert (labels, weights) == ([1, 2, 3], [4, 5, 6])
    assert features["token_ids"].shape == (3, 9)


def test_a_new_length_is_used_from_then_on(tokenizer):
    preprocessor = make(tokenizer)
    preprocessor(TEXTS)

    preprocessor.sequence_length = 5

    np.testing.assert_array_equal(
        preprocessor(TEXTS)["token_ids"], by_sentencepiece(TEXTS, 5)
    )


def test_its_config_makes_an_equal_one(tokenizer):
    preprocessor = make(tokenizer)

    copy = T5TextEmbedderPreprocessor.from_config(preprocessor.get_config())
    # KerasHub keeps the vocabulary beside the config.
    copy.tokenizer.set_proto(VOCABULARY.read_bytes())

    assert (copy.sequence_length, copy.prefix) == (9, "ask: ")
    np.testing.assert_array_equal(
        copy(TEXTS)["token_ids"], preprocessor(TEXTS)["token_ids"]
    )


def test_two_segments_are_refused(tokenizer):
    with pytest.raises(InvalidInputError, match="2 segments"):
        make(tokenizer)((["a"], ["b"]), [1])


def test_numbers_are_refused(tokenizer):
    with pytest.raises(InvalidInputError):
        make(tokenizer)([1, 2])


def test_a_length_without_room_for_the_end_is_refused(tokenizer):
    with pytest.raises(InvalidInputError, match="sequence_length=0"):
        make(tokenizer, sequence_length=0)
