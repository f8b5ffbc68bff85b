"""Reading and writing SentencePiece vocabularies."""

import os

import keras_hub

from tf_samtone.text.vocabulary_file import VocabularyFile


def load_tokenizer(
    path: str | os.PathLike[str],
) -> keras_hub.models.T5Tokenizer:
    """Loads a T5 tokenizer from a file or folder on disk.

    Args:
        path: a SentencePiece file (`*.spm`, `*.model`), a KerasHub preset
            folder (`assets/tokenizer/vocabulary.spm`) or a Hugging Face T5
            folder (`spiece.model`).

    Returns:
        `keras_hub.models.T5Tokenizer` with pad 0, `</s>` 1 and `<unk>` 2.

    Raises:
        InvalidInputError: if there is no such file, the folder holds no
            vocabulary, or the special pieces are not those of T5.
        CorruptFileError: if the file is not a SentencePiece model.
    """
    proto = VocabularyFile.read(path).proto
    return keras_hub.models.T5Tokenizer(proto=proto)


def save_tokenizer(
    tokenizer: keras_hub.models.T5Tokenizer,
    directory: str | os.PathLike[str],
) -> None:
    """Writes a tokenizer in KerasHub's preset layout.

    The folder receives `tokenizer.json` and
    `assets/tokenizer/vocabulary.spm`. It is created when absent; other files
    in it are left alone, so call this on the temporary folder of a larger
    atomic save.

    Args:
        tokenizer: the tokenizer.
        directory: folder to write to.
    """
    tokenizer.save_to_preset(str(directory))
