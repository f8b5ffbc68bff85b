"""Training a SentencePiece vocabulary."""

import io
import logging
import os
from collections.abc import Iterable
from pathlib import Path

import keras_hub
import numpy as np

from tf_samtone._files import atomic_write_bytes
from tf_samtone.errors import InvalidInputError
from tf_samtone.text._inputs import to_bytes
from tf_samtone.text.tokenizer_files import load_tokenizer

_logger = logging.getLogger("tf_samtone")

# The result depends on the number of threads, so it must not follow the
# machine.
_NUM_THREADS = 2
_LONGEST_SENTENCE_BYTES = 8192


def train_tokenizer(
    texts: Iterable[str],
    path: str | os.PathLike[str],
    *,
    vocabulary_size: int,
    character_coverage: float = 0.9999,
    max_sentences: int = 200_000,
    lowercase: bool = False,
    seed: int = 0,
) -> keras_hub.models.T5Tokenizer:
    """Trains a unigram vocabulary with T5's special pieces and writes it.

    The same texts, arguments and SentencePiece version give the same bytes.
    A text of more than 8192 bytes counts with its first 8192.

    Args:
        texts: the sample, read once; white space is collapsed.
        path: file to write, conventionally `*.spm`. An existing file is
            replaced at the end, in one step.
        vocabulary_size: int, at least 4. Most pieces, special ones included;
            fewer come out when the texts do not have that many.
        character_coverage: float in (0, 1]. Share of the characters that get
            a piece; the rest becomes `<unk>`. Defaults to `0.9999`.
        max_sentences: int. Most texts used; more are sampled uniformly.
            Defaults to `200_000`.
        lowercase: bool. The tokenizer folds case, here and whenever it is
            used. Defaults to `False`.
        seed: int. Seed of that sampling. Defaults to `0`.

    Returns:
        `keras_hub.models.T5Tokenizer` with pad 0, `</s>` 1, `<unk>` 2.

    Raises:
        InvalidInputError: if an option is out of range, no text is left, or
            SentencePiece cannot make a vocabulary of that size.

    Reference:
        Kudo, 2018, Subword Regularization, https://arxiv.org/abs/1804.10959
    """
    _check_options(vocabulary_size, character_coverage, max_sentences)
    sentences = _sample(_cleaned(texts), max_sentences, seed)
    if not sentences:
        raise InvalidInputError(
            "Expected `texts` to hold at least one text that is not empty. "
            "Received: 0 such texts. Check the source of the texts."
        )
    proto = _train(sentences, vocabulary_size, character_coverage, lowercase)
    atomic_write_bytes(Path(path), proto)
    tokenizer = load_tokenizer(path)
    _logger.info(
        "trained a vocabulary of %d pieces (%d asked for) on %d texts: %s",
        tokenizer.vocabulary_size(),
        vocabulary_size,
        len(sentences),
        path,
    )
    return tokenizer


def _cleaned(texts: Iterable[str]) -> Iterable[bytes]:
    for row, text in enumerate(texts):
        if not isinstance(text, str | bytes):
            raise InvalidInputError(
                "Expected every row of `texts` to be a string. Received: "
                f"texts[{row}]={text!r}. Replace or drop row {row}."
            )
        valid = to_bytes(text).decode("utf-8", errors="replace")
        # SentencePiece refuses NUL in training text.
        words = valid.replace("\0", " ").split()
        sentence = " ".join(words).encode("utf-8")
        head = sentence[:_LONGEST_SENTENCE_BYTES]
        if head:
            yield head.decode("utf-8", errors="ignore").encode("utf-8")


def _sample(texts: Iterable[bytes], size: int, seed: int) -> list[bytes]:
    """Reservoir sampling: uniform, one pass, a function of the seed."""
    generator = np.random.default_rng(seed)
    kept: list[bytes] = []
    for row, text in enumerate(texts):
        if row < size:
            kept.append(text)
            continue
        place = int(generator.integers(row + 1))
        if place < size:
            kept[place] = text
    return kept


def _train(
    sentences: list[bytes],
    vocabulary_size: int,
    character_coverage: float,
    lowercase: bool,
) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(sentences),
            model_writer=model,
            model_type="unigram",
            vocab_size=vocabulary_size,
            hard_vocab_limit=False,
            character_coverage=character_coverage,
            normalization_rule_name="nmt_nfkc_cf" if lowercase else "nmt_nfkc",
            max_sentence_length=2 * _LONGEST_SENTENCE_BYTES,
            num_threads=_NUM_THREADS,
            pad_id=0,
            eos_id=1,
            unk_id=2,
            bos_id=-1,
            pad_piece="<pad>",
            eos_piece="</s>",
            unk_piece="<unk>",
            minloglevel=2,
        )
    except RuntimeError as error:
        raise InvalidInputError(
            "Expected texts from which SentencePiece can make a vocabulary. "
            f"Received: vocabulary_size={vocabulary_size} and "
            f"{len(sentences)} texts; it answered: {error}. Give more text "
            "or another vocabulary_size."
        ) from error
    return model.getvalue()


def _check_options(
    vocabulary_size: int, character_coverage: float, max_sentences: int
) -> None:
    checks = (
        (vocabulary_size >= 4, "vocabulary_size", vocabulary_size, ">= 4"),
        (
            0.0 < character_coverage <= 1.0,
            "character_coverage",
            character_coverage,
            "in (0, 1]",
        ),
        (max_sentences >= 1, "max_sentences", max_sentences, ">= 1"),
    )
    for valid, name, value, bound in checks:
        if not valid:
            raise InvalidInputError(
                f"Expected `{name}` {bound}. Received: {name}={value!r}. "
                "Pass a value in that range."
            )
