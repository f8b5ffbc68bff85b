"""Reading and writing SentencePiece vocabularies."""

import os
from pathlib import Path

import keras_hub

from tf_samtone.errors import CorruptFileError, InvalidInputError

# KerasHub preset folder, its asset folder, Hugging Face T5 folder.
_PLACES_IN_A_FOLDER = (
    "assets/tokenizer/vocabulary.spm",
    "vocabulary.spm",
    "spiece.model",
)
_SPECIAL_PIECES = {0: "<pad>", 1: "</s>", 2: "<unk>"}


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
    file = _vocabulary_file(Path(path))
    proto = file.read_bytes()
    pieces = _special_pieces(proto, file)
    if pieces != _SPECIAL_PIECES:
        raise InvalidInputError(
            f"Expected the T5 special pieces {_SPECIAL_PIECES}. Received: "
            f"{file} with {pieces}. Train the vocabulary with "
            "tf_samtone.text.train_tokenizer, or with SentencePiece and "
            "pad_id=0, eos_id=1, unk_id=2, bos_id=-1."
        )
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


def _vocabulary_file(path: Path) -> Path:
    if path.is_file():
        return path
    for place in _PLACES_IN_A_FOLDER:
        if (path / place).is_file():
            return path / place
    raise InvalidInputError(
        "Expected `path` to be a SentencePiece file or a folder with one of "
        f"{', '.join(_PLACES_IN_A_FOLDER)}. Received: path={str(path)!r}, "
        f"{'a folder without them' if path.is_dir() else 'which is absent'}. "
        "Check the path."
    )


def _special_pieces(proto: bytes, file: Path) -> dict[int, str]:
    import sentencepiece

    try:
        if not proto:
            raise ValueError("the file is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        count = min(3, processor.get_piece_size())
        return {i: processor.id_to_piece(i) for i in range(count)}
    except (RuntimeError, ValueError) as error:
        raise CorruptFileError(
            f"Expected a SentencePiece model. Received: {file} of "
            f"{len(proto)} bytes, which cannot be parsed ({error}). Copy the "
            "file again."
        ) from error
