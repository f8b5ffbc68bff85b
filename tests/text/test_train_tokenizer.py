"""Training vocabularies."""

import pytest
from data_files.make_tiny_vocabulary import sentences

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import (
    TextPreprocessor,
    load_tokenizer,
    train_tokenizer,
)

SENTENCES = sentences()[::7]


def test_special_pieces_are_those_of_t5(tmp_path):
    tokenizer = train_tokenizer(
        SENTENCES, tmp_path / "a.spm", vocabulary_size=100
    )

    assert tokenizer.get_vocabulary()[:3] == ["<pad>", "</s>", "<unk>"]
    assert "<s>" not in tokenizer.get_vocabulary()


def test_the_written_file_is_the_returned_tokenizer(tmp_path):
    tokenizer = train_tokenizer(
        SENTENCES, tmp_path / "a.spm", vocabulary_size=100
    )

    assert load_tokenizer(tmp_path / "a.spm").proto == tokenizer.proto


def test_the_same_texts_give_the_same_bytes(tmp_path):
    options = {"vocabulary_size": 100, "max_sentences": 40, "seed": 3}

    train_tokenizer(SENTENCES, tmp_path / "a.spm", **options)
    train_tokenizer(iter(SENTENCES), tmp_path / "b.spm", **options)

    assert (tmp_path / "a.spm").read_bytes() == (
        tmp_path / "b.spm"
    ).read_bytes()


def test_the_seed_chooses_the_sample(tmp_path):
    options = {"vocabulary_size": 100, "max_sentences": 20}

    one = train_tokenizer(SENTENCES, tmp_path / "a.spm", seed=1, **options)
    two = train_tokenizer(SENTENCES, tmp_path / "b.spm", seed=2, **options)

    assert one.get_vocabulary() != two.get_vocabulary()


def test_a_small_text_gives_fewer_pieces_than_asked_for(tmp_path):
    tokenizer = train_tokenizer(
        ["a cat", "a dog"], tmp_path / "a.spm", vocabulary_size=5000
    )

    assert 4 <= tokenizer.vocabulary_size() < 50


def test_awkward_texts_are_accepted(tmp_path):
    awkward = ["nul \0 inside", "two\r\nlines", "\ud800", "", "long " * 9000]

    tokenizer = train_tokenizer(
        [*SENTENCES, *awkward], tmp_path / "a.spm", vocabulary_size=100
    )

    assert tokenizer.vocabulary_size() == 100


@pytest.mark.parametrize("texts", [[], ["", " \n"]], ids=["none", "blank"])
def test_no_text_is_refused(tmp_path, texts):
    with pytest.raises(InvalidInputError, match="at least one text"):
        train_tokenizer(texts, tmp_path / "a.spm", vocabulary_size=100)

    assert list(tmp_path.iterdir()) == []


def test_a_row_that_is_no_string_is_named(tmp_path):
    with pytest.raises(InvalidInputError, match=r"texts\[1\]=5"):
        train_tokenizer(["a", 5], tmp_path / "a.spm", vocabulary_size=100)


def test_a_vocabulary_smaller_than_the_alphabet_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="vocabulary_size=5 and"):
        train_tokenizer(SENTENCES, tmp_path / "a.spm", vocabulary_size=5)


@pytest.mark.parametrize(
    "options",
    [
        {"vocabulary_size": 3},
        {"vocabulary_size": 100, "character_coverage": 0.0},
        {"vocabulary_size": 100, "character_coverage": 1.1},
        {"vocabulary_size": 100, "max_sentences": 0},
    ],
    ids=["vocabulary_size", "no_coverage", "coverage", "max_sentences"],
)
def test_an_option_out_of_range_is_refused(tmp_path, options):
    with pytest.raises(InvalidInputError, match="Pass a value in that range"):
        train_tokenizer(SENTENCES, tmp_path / "a.spm", **options)


@pytest.mark.parametrize("lowercase", [False, True])
def test_case_is_folded_on_request(tmp_path, lowercase):
    tokenizer = train_tokenizer(
        [sentence.lower() for sentence in SENTENCES],
        tmp_path / "a.spm",
        vocabulary_size=100,
        lowercase=lowercase,
    )
    text = SENTENCES[0].lower()

    upper, lower = (
        TextPreprocessor(tokenizer, 64)([t])["token_ids"].numpy().tolist()
        for t in (text.upper(), text)
    )

    assert (upper == lower) is lowercase
