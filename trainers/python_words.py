"""Mined Python texts in the form in which the quickstart reads them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from tf_samtone.data import (
    Collection,
    Pair,
    read_python_docs,
    read_python_modules,
    split_identifiers,
    weak_pairs,
)

__all__ = ["PythonWords", "python_words"]


@dataclass(frozen=True)
class PythonWords:
    """A collection and weak pairs, all written as plain words.

    Attributes:
        collection: `Collection`, after `split_identifiers`.
        weak: tuple of `Pair`, after `split_identifiers`.
    """

    collection: Collection
    weak: tuple[Pair, ...]

    @staticmethod
    def normalise(text: str) -> str:
        """Write a text as the texts of the collection are written."""
        return split_identifiers(text)

    @cached_property
    def train(self) -> list[Pair]:
        """Docstring and function of the training files."""
        return self.collection.pairs("train")

    def pairs(self, name: str) -> Sequence[Pair]:
        """Return the pairs that a stage calls `"train"` or `"weak"`."""
        return self.weak if name == "weak" else self.train

    def training_texts(self) -> Iterator[str]:
        """Yield each text of the training files once."""
        texts: dict[str, None] = {}
        for pair in (*self.train, *self.weak):
            texts[pair.query] = texts[pair.document] = None
        return iter(texts)

    def counts(self) -> dict[str, int]:
        """Return how much there is of what."""
        return {
            "documents": len(self.collection.corpus),
            "weak_pairs": len(self.weak),
            "train_pairs": len(self.train),
            **{
                f"{split}_queries": len(self.collection.qrels[split])
                for split in ("dev", "test")
            },
        }


def python_words(packages: Sequence[str] = ()) -> PythonWords:
    """Mine packages and write everything as words.

    Args:
        packages: see `tf_samtone.data.read_python_docs`; empty for its
            default.

    Returns:
        `PythonWords`.
    """
    modules = read_python_modules(*([packages] if packages else []))
    collection = read_python_docs(modules=modules)
    # A function stands in one pair per sentence of its docstring.
    known: dict[str, str] = {}

    def words(text: str) -> str:
        if text not in known:
            known[text] = split_identifiers(text)
        return known[text]

    return PythonWords(
        collection=Collection(
            corpus={k: words(v) for k, v in collection.corpus.items()},
            queries={k: words(v) for k, v in collection.queries.items()},
            qrels=collection.qrels,
        ),
        weak=tuple(
            Pair(words(pair.query), words(pair.document))
            for pair in weak_pairs(modules=modules)
        ),
    )
