"""Finding and checking of SentencePiece vocabularies, without TensorFlow."""

import os
from dataclasses import dataclass
from pathlib import Path

from tf_samtone.errors import CorruptFileError, InvalidInputError

__all__ = ["VocabularyFile"]

# KerasHub preset folder, its asset folder, Hugging Face T5 folder.
_PLACES_IN_A_FOLDER = (
    "assets/tokenizer/vocabulary.spm",
    "vocabulary.spm",
    "spiece.model",
)
_SPECIAL_PIECES = {0: "<pad>", 1: "</s>", 2: "<unk>"}


@dataclass(frozen=True)
class VocabularyFile:
    """A SentencePiece vocabulary with the special pieces of T5.

    Attributes:
        path: the file.
        proto: bytes. Its content.
        num_pieces: int.
    """

    path: Path
    proto: bytes
    num_pieces: int

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "VocabularyFile":
        """Reads a vocabulary from a file or folder on disk.

        Args:
            path: a SentencePiece file (`*.spm`, `*.model`), a KerasHub preset
                folder (`assets/tokenizer/vocabulary.spm`) or a Hugging Face T5
                folder (`spiece.model`).

        Returns:
            `VocabularyFile` with pad 0, `</s>` 1 and `<unk>` 2.

        Raises:
            InvalidInputError: if there is no such file, the folder holds no
                vocabulary, or the special pieces are not those of T5.
            CorruptFileError: if the file is not a SentencePiece model.
        """
        file = _find(Path(path))
        proto = file.read_bytes()
        pieces, count = _special_pieces(proto, file)
        if pieces != _SPECIAL_PIECES:
            raise InvalidInputError(
                f"Expected the T5 special pieces {_SPECIAL_PIECES}. Received: "
                f"{file} with {pieces}. Train the vocabulary with "
                "tf_samtone.text.train_tokenizer, or with SentencePiece and "
                "pad_id=0, eos_id=1, unk_id=2, bos_id=-1."
            )
        return cls(file, proto, count)

    def vocabulary_size(self) -> int:
        """Returns the number of pieces, as KerasHub's tokenizers do."""
        return self.num_pieces


def _find(path: Path) -> Path:
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


def _special_pieces(proto: bytes, file: Path) -> tuple[dict[int, str], int]:
    """Returns the first three pieces and the number of all."""
    import sentencepiece

    try:
        if not proto:
            raise ValueError("the file is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        size = processor.get_piece_size()
        first = {i: processor.id_to_piece(i) for i in range(min(3, size))}
    except (RuntimeError, ValueError) as error:
        raise CorruptFileError(
            f"Expected a SentencePiece model. Received: {file} of "
            f"{len(proto)} bytes, which cannot be parsed ({error}). Copy the "
            "file again."
        ) from error
    return first, size
