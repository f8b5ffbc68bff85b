"""Tests of the tokenizer that KerasHub finds for a `T5Encoder`."""

import pathlib

import keras
import keras_hub
import numpy as np
import pytest

from tf_samtone.models import T5Encoder
from tf_samtone.models.t5_encoder_tokenizer import T5EncoderTokenizer
from tf_samtone.text import save_tokenizer

VOCABULARY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"
TEXT = "the small dog reads"

# KerasHub leaves the vocabulary's file to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture(scope="module")
def tokenizer():
    return T5EncoderTokenizer(proto=str(VOCABULARY))


def test_it_gives_the_tokens_of_kerashubs(tokenizer):
    theirs = keras_hub.models.T5Tokenizer(proto=str(VOCABULARY))

    np.testing.assert_array_equal(tokenizer(TEXT), theirs(TEXT))


def test_it_belongs_to_presets_of_our_encoder(tokenizer):
    assert tokenizer.backbone_cls is T5Encoder
    name = keras.saving.get_registered_name(T5EncoderTokenizer)
    assert name == "tf_samtone>T5EncoderTokenizer"


def test_kerashub_finds_it_by_the_backbone_of_a_preset(
    tokenizer, make_tiny_encoder, tmp_path
):
    make_tiny_encoder(0, num_layers=1).save_to_preset(str(tmp_path))
    save_tokenizer(tokenizer, tmp_path)

    found = keras_hub.models.Tokenizer.from_preset(str(tmp_path))

    assert type(found) is T5EncoderTokenizer
    np.testing.assert_array_equal(found(TEXT), tokenizer(TEXT))
