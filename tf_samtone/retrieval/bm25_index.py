"""BM25 keyword search on bm25s."""

import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_samtone.errors import (
    InvalidInputError,
    MissingDependencyError,
)
from tf_samtone.retrieval import _storage
from tf_samtone.retrieval._top_k import top_k_positions
from tf_samtone.retrieval._validation import check_ids, check_k, check_texts

__all__ = ["BM25Index"]

_BM25_FOLDER = "bm25s"
_STOP_WORDS_NAME = "stop_words.json"


class BM25Index:
    """Keyword search with BM25 (Lucene's variant, k1=1.5, b=0.75).

    Texts are lower-cased and split into words of two or more characters.
    A query without a known word gives every document the score 0; its
    results are the first `k` documents. Ties are ordered by insertion.

    >>> index = BM25Index.build(["red fox", "blue whale"], ["a", "b"])
    >>> scores, ids = index.search(["the whale"], 1)
    >>> ids[0, 0]
    'b'

    Use `build` or `load` to create one.

    Attributes:
        kind: str. Name of this kind of index in a manifest.
        ids: list of str `[num_docs]`, in insertion order.
        stop_words: list of str that are ignored.
        stemmer: str or None. Language of the Snowball stemmer.
        is_exact: bool. Always `True`.

    Reference:
        Lù, 2024, BM25S: Orders of magnitude faster lexical search via eager
        sparse scoring, https://arxiv.org/abs/2407.03618
    """

    kind = "bm25_index"
    is_exact = True

    def __init__(
        self,
        retriever: Any,
        ids: list[str],
        *,
        stop_words: list[str],
        stemmer: str | None,
    ) -> None:
        """Store checked values; use `build` to have them checked."""
        self._retriever = retriever
        self._id_array = np.array(ids, dtype=object)
        self.ids = ids
        self.stop_words = stop_words
        self.stemmer = stemmer

    @classmethod
    def build(
        cls,
        texts: Sequence[str],
        ids: Sequence[str],
        *,
        stop_words: str | Sequence[str] | None = "english",
        stemmer: str | None = None,
    ) -> "BM25Index":
        """Make an index of document texts.

        Args:
            texts: str, one per document; may be empty strings, not all.
            ids: distinct, non-empty str, one per text.
            stop_words: a language of bm25s, a list of words, or `None` to
                keep all words. Defaults to `"english"`.
            stemmer: str. Language of a Snowball stemmer; needs PyStemmer.
                Defaults to `None` (no stemming).

        Raises:
            InvalidInputError: for an empty corpus, texts without a single
                word, unknown languages or duplicate ids.
            MissingDependencyError: if bm25s or PyStemmer is not installed.
        """
        documents = check_texts("texts", texts)
        names = check_ids(ids, len(documents))
        bm25s = _bm25s_module()
        words = _stop_word_list(bm25s, stop_words)
        tokens = _tokenize(bm25s, documents, words, stemmer)
        # bm25s would number the words in the order of a set, which changes
        # from process to process.
        vocabulary = {
            word: number
            for number, word in enumerate(
                sorted({word for row in tokens for word in row})
            )
        }
        if not vocabulary:
            raise InvalidInputError(
                "Expected at least one text with a word that is no stop "
                f"word. Received: {len(documents)} texts without any. Check "
                "the texts or pass stop_words=None."
            )
        retriever = bm25s.BM25(backend="numpy")
        retriever.index(
            (
                [[vocabulary[word] for word in row] for row in tokens],
                vocabulary,
            ),
            create_empty_token=False,
            show_progress=False,
        )
        return cls(retriever, names, stop_words=words, stemmer=stemmer)

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.ids)

    def search(
        self, queries: Sequence[str], k: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the `k` best documents of every query, best first.

        Args:
            queries: str `[num_queries]`; may be empty.
            k: int, from 1 to the number of documents.

        Returns:
            `(scores, ids)`: float32 and object (str) `[num_queries, k]`.

        Raises:
            InvalidInputError: if k is out of range or a query is no str.
        """
        texts = check_texts("queries", queries)
        k = check_k(k, len(self))
        tokens = _tokenize(
            _bm25s_module(), texts, self.stop_words, self.stemmer
        )
        scores = np.empty((len(texts), k), dtype=np.float32)
        positions = np.empty((len(texts), k), dtype=np.int64)
        for row, words in enumerate(tokens):
            known = self._retriever.get_tokens_ids(words)
            every_score = self._retriever.get_scores_from_ids(known)
            positions[row] = top_k_positions(every_score, k)
            scores[row] = every_score[positions[row]]
        return scores, self._id_array[positions]

    def save(
        self, directory: str | os.PathLike[str], *, overwrite: bool = False
    ) -> None:
        """Write the index to a folder, complete or not at all.

        The folder holds the word scores in the format of bm25s, the ids and
        the vocabulary, but not the texts.

        Args:
            directory: new or empty folder.
            overwrite: bool. Replace a saved index. Defaults to `False`.

        Raises:
            OutputExistsError: if the folder holds files.
        """
        with _storage.save_index_folder(
            directory,
            kind=self.kind,
            ids=self.ids,
            fields={"metric": "bm25", "stemmer": self.stemmer},
            overwrite=overwrite,
        ) as folder:
            self._retriever.save(
                folder / _BM25_FOLDER, allow_pickle=False, show_progress=False
            )
            (folder / _STOP_WORDS_NAME).write_text(
                json.dumps(self.stop_words), encoding="utf-8"
            )

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "BM25Index":
        """Read an index written by `save`, after checking every file.

        Args:
            directory: folder of the index.

        Raises:
            CorruptFileError: if a file is missing or damaged.
            MismatchError: if kind or version differ.
            MissingDependencyError: if bm25s is not installed.
        """
        fields, ids = _storage.load_index_folder(directory, kind=cls.kind)
        folder = pathlib.Path(directory)
        retriever = _bm25s_module().BM25.load(
            folder / _BM25_FOLDER, load_corpus=False, allow_pickle=False
        )
        words = json.loads(
            (folder / _STOP_WORDS_NAME).read_text(encoding="utf-8")
        )
        return cls(retriever, ids, stop_words=words, stemmer=fields["stemmer"])


def _tokenize(
    bm25s: Any, texts: list[str], stop_words: list[str], stemmer: str | None
) -> list[list[str]]:
    rows: list[list[str]] = bm25s.tokenize(
        texts,
        stopwords=stop_words,
        stemmer=_stem_function(stemmer),
        return_ids=False,
        show_progress=False,
    )
    return rows


def _stop_word_list(
    bm25s: Any, stop_words: str | Sequence[str] | None
) -> list[str]:
    """Return the words, so that a saved index does not depend on bm25s."""
    if stop_words is None:
        return []
    if not isinstance(stop_words, str):
        return check_texts("stop_words", stop_words)
    try:
        # bm25s has no public list of its stop words by language.
        return list(bm25s.tokenization._infer_stopwords(stop_words))
    except ValueError as error:
        raise InvalidInputError(
            "Expected `stop_words` to be a language of bm25s, a list of "
            f"words or None. Received: stop_words={stop_words!r}. {error}"
        ) from error


def _stem_function(language: str | None) -> Any:
    if language is None:
        return None
    try:
        import Stemmer
    except ImportError as error:
        raise MissingDependencyError(
            f"Expected PyStemmer for stemmer={language!r}. Received: "
            f"{error}. Run `pip install PyStemmer` or pass stemmer=None."
        ) from error
    try:
        return Stemmer.Stemmer(language).stemWords
    except KeyError as error:
        raise InvalidInputError(
            f"Expected `stemmer` to be one of {Stemmer.algorithms()}. "
            f"Received: stemmer={language!r}. Pass one of these."
        ) from error


def _bm25s_module() -> Any:
    try:
        import bm25s
    except ImportError as error:
        raise MissingDependencyError(
            f"Expected bm25s to be installed. Received: {error}. Run `pip "
            "install bm25s`."
        ) from error
    return bm25s
