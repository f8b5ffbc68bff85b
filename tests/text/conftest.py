"""Tokenizers of the text tests."""

import pathlib

import keras_hub
import pytest
import sentencepiece
from data_files.make_tiny_vocabulary import TINY_VOCABULARY

from tf_samtone.text import load_tokenizer


@pytest.fixture(scope="session")
def vocabulary_path() -> pathlib.Path:
    return TINY_VOCABULARY


@pytest.fixture(scope="session")
def tokenizer(vocabulary_path) -> keras_hub.models.T5Tokenizer:
    return load_tokenizer(vocabulary_path)


@pytest.fixture(scope="session")
def reference(vocabulary_path) -> sentencepiece.SentencePieceProcessor:
    """The independent implementation that the graph is compared with."""
    return sentencepiece.SentencePieceProcessor(model_file=str(vocabulary_path))
