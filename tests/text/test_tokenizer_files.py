"""Loading and saving vocabularies."""

import io
import shutil

import pytest
import sentencepiece

from tf_samtone.errors import CorruptFileError, InvalidInputError
from tf_samtone.text import load_tokenizer, save_tokenizer


def test_the_tiny_vocabulary_has_the_special_pieces_of_t5(tokenizer):
    assert tokenizer.get_vocabulary()[:3] == ["<pad>", "</s>", "<unk>"]
    assert tokenizer.vocabulary_size() >= 200


def test_saved_folder_has_the_keras_hub_layout(tokenizer, tmp_path):
    save_tokenizer(tokenizer, tmp_path / "preset")

    files = {
        str(file.relative_to(tmp_path / "preset"))
        for file in (tmp_path / "preset").rglob("*")
        if file.is_file()
    }
    assert files == {"tokenizer.json", "assets/tokenizer/vocabulary.spm"}


def test_round_trip_keeps_the_bytes(tokenizer, tmp_path):
    save_tokenizer(tokenizer, tmp_path)

    assert load_tokenizer(tmp_path).proto == tokenizer.proto


@pytest.mark.parametrize("name", ["spiece.model", "vocabulary.spm"])
def test_a_folder_with_the_bare_file_loads(
    tokenizer, vocabulary_path, tmp_path, name
):
    shutil.copy(vocabulary_path, tmp_path / name)

    assert load_tokenizer(tmp_path).proto == tokenizer.proto


def test_an_absent_path_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="which is absent"):
        load_tokenizer(tmp_path / "nowhere.spm")


def test_a_folder_without_vocabulary_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="folder without them"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a model"])
def test_a_file_that_is_no_model_is_corrupt(tmp_path, content):
    (tmp_path / "bad.spm").write_bytes(content)

    with pytest.raises(CorruptFileError, match=r"bad\.spm"):
        load_tokenizer(tmp_path / "bad.spm")


def test_a_cut_file_is_corrupt(vocabulary_path, tmp_path):
    (tmp_path / "cut.spm").write_bytes(vocabulary_path.read_bytes()[:-100])

    with pytest.raises(CorruptFileError, match=r"cut\.spm"):
        load_tokenizer(tmp_path / "cut.spm")


def test_a_vocabulary_with_other_special_pieces_is_refused(tmp_path):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox"]),
        model_writer=model,
        model_type="word",
        vocab_size=7,
        minloglevel=2,
    )
    (tmp_path / "other.spm").write_bytes(model.getvalue())

    with pytest.raises(InvalidInputError, match="pad_id=0, eos_id=1"):
        load_tokenizer(tmp_path / "other.spm")
