"""Tokenizer files; their ids are in tests/parity/test_export_parity.py."""

import base64
import json
import pathlib

import pytest
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from tf_samtone.checkpoints._foreign_tokenizer import (
    check_foreign_tokenizer,
    write_foreign_tokenizer,
)
from tf_samtone.errors import InvalidInputError
from tf_samtone.text import load_tokenizer

DATA_FILES = pathlib.Path(__file__).parents[1] / "data_files"
VOCABULARY = DATA_FILES / "tiny.spm"


def read(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    write_foreign_tokenizer(tmp_path, load_tokenizer(VOCABULARY), 77)
    return tmp_path


def vocabulary() -> sentencepiece_model_pb2.ModelProto:
    return sentencepiece_model_pb2.ModelProto.FromString(
        VOCABULARY.read_bytes()
    )


class Proto:
    """A vocabulary that the tokenizer's own class might refuse first."""

    def __init__(self, model) -> None:
        self.proto = model.SerializeToString()


def test_the_vocabulary_is_written_as_it_is(folder):
    assert (folder / "spiece.model").read_bytes() == VOCABULARY.read_bytes()


def test_pieces_and_scores_are_those_of_sentencepiece(folder):
    processor = sentencepiece.SentencePieceProcessor(str(VOCABULARY))

    model = read(folder / "tokenizer.json")["model"]

    assert model["type"] == "Unigram"
    assert model["unk_id"] == processor.unk_id()
    assert model["vocab"] == [
        [processor.id_to_piece(i), processor.get_score(i)]
        for i in range(processor.get_piece_size())
    ]


def test_no_id_is_beyond_the_vocabulary(folder):
    tokenizer = read(folder / "tokenizer.json")

    tokens = [(t["id"], t["content"]) for t in tokenizer["added_tokens"]]
    assert tokens == [(0, "<pad>"), (1, "</s>"), (2, "<unk>")]
    assert read(folder / "tokenizer_config.json")["extra_ids"] == 0


def test_every_row_ends_with_the_end_token(folder):
    processor = read(folder / "tokenizer.json")["post_processor"]

    assert processor["single"][-1]["SpecialToken"]["id"] == "</s>"
    assert processor["special_tokens"]["</s>"]["ids"] == [1]


def test_the_normalizer_starts_with_the_map_of_the_vocabulary(folder):
    model = vocabulary()

    steps = read(folder / "tokenizer.json")["normalizer"]["normalizers"]

    assert steps[0]["type"] == "Precompiled"
    assert base64.b64decode(steps[0]["precompiled_charsmap"]) == (
        model.normalizer_spec.precompiled_charsmap
    )


def test_a_vocabulary_without_map_has_no_such_step(tmp_path):
    model = vocabulary()
    model.normalizer_spec.precompiled_charsmap = b""

    write_foreign_tokenizer(tmp_path, Proto(model), 77)

    steps = read(tmp_path / "tokenizer.json")["normalizer"]["normalizers"]
    assert {step["type"] for step in steps} == {"Replace"}


def test_the_config_names_class_length_and_special_tokens(folder):
    special = {"pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}

    assert read(folder / "special_tokens_map.json") == special
    assert read(folder / "tokenizer_config.json") == {
        **special,
        "extra_ids": 0,
        "model_max_length": 77,
        "tokenizer_class": "T5Tokenizer",
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trainer_spec.byte_fallback", True),
        ("trainer_spec.model_type", 2),
        ("trainer_spec.treat_whitespace_as_suffix", True),
        ("normalizer_spec.add_dummy_prefix", False),
        ("normalizer_spec.remove_extra_whitespaces", False),
        ("normalizer_spec.escape_whitespaces", False),
    ],
)
def test_an_option_that_t5_does_not_have_there_is_refused(name, value):
    model = vocabulary()
    part, field = name.split(".")
    setattr(getattr(model, part), field, value)

    with pytest.raises(InvalidInputError, match=f"{name}={value!r}"):
        check_foreign_tokenizer(Proto(model))


def test_other_special_pieces_are_refused():
    model = vocabulary()
    model.pieces[1].piece = "[SEP]"

    with pytest.raises(InvalidInputError, match=r"first pieces.*\[SEP\]"):
        check_foreign_tokenizer(Proto(model))


def test_unused_pieces_are_refused():
    model = vocabulary()
    model.pieces[5].type = 5

    with pytest.raises(InvalidInputError, match="unused pieces"):
        check_foreign_tokenizer(Proto(model))
