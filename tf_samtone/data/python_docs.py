"""Functions of installed Python packages as a retrieval collection.

Documents are functions (qualified name, signature, code without docstrings),
queries are the first paragraphs of their docstrings. Files, not functions,
are held out.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tf_samtone.data.collection import Collection, Qrels
from tf_samtone.data.python_module import PythonDefinition, PythonModule
from tf_samtone.data.python_sources import (
    DEFAULT_PACKAGES,
    read_python_modules,
    split_of_module,
)
from tf_samtone.data.python_texts import (
    document_text,
    first_paragraph,
    is_query,
    split_identifiers,
)
from tf_samtone.errors import DataError, InvalidInputError

__all__ = ["read_python_docs"]

_LOGGER = logging.getLogger("tf_samtone")


def read_python_docs(
    packages: Sequence[str] = DEFAULT_PACKAGES,
    *,
    roots: Mapping[str, str | os.PathLike[str]] | None = None,
    modules: Sequence[PythonModule] | None = None,
    min_words: int = 4,
    max_words: int = 30,
) -> Collection:
    """Build the docstring-to-function collection of installed packages.

    A document is a function whose docstring starts with a paragraph of a
    fitting length; functions with equal text count once. The paragraph is
    its query. All functions of one file are in one split.

    A paragraph that several functions share names none of them. In training
    such a query has several documents; held out there is no such query, so
    no query of dev or test occurs in training.

    Args:
        packages: top-level names; `"stdlib"` is the standard library of this
            Python. Defaults to `("stdlib", "numpy", "keras", "tensorflow")`.
            Ignored if `roots` or `modules` is given.
        roots: mapping from a package name to the folder of its sources, in
            place of looking the packages up. Defaults to `None`.
        modules: result of `read_python_modules`, to parse only once.
            Defaults to `None`.
        min_words: int >= 1. Shortest query, in words. Defaults to `4`.
        max_words: int. Longest query, in words. Defaults to `30`.

    Returns:
        `Collection` with the splits `"train"`, `"dev"` and `"test"`; document
        ids are qualified names, with `#2`, `#3`, ... for a name's later
        definitions.

    Raises:
        InvalidInputError: if a package is not installed, or the numbers of
            words are out of range.
        DataError: if no function with a usable docstring was found.
    """
    if not 1 <= min_words <= max_words:
        raise InvalidInputError(
            "Expected 1 <= `min_words` <= `max_words`. Received: min_words="
            f"{min_words!r}, max_words={max_words!r}. Exchange or change them."
        )
    if modules is None:
        modules = read_python_modules(packages, roots=roots)
    corpus: dict[str, str] = {}
    paragraphs: dict[str, str] = {}
    splits: dict[str, str] = {}
    seen: set[str] = set()
    for split, definition in _functions(modules):
        paragraph = first_paragraph(definition.docstring)
        text = document_text(definition)
        if text in seen or not is_query(paragraph, min_words, max_words):
            continue
        seen.add(text)
        document_id = _unique(definition.name, corpus)
        corpus[document_id] = text
        paragraphs[document_id] = paragraph
        splits[document_id] = split
    if not corpus:
        raise DataError(
            "Expected functions whose docstrings start with a paragraph of "
            f"{min_words} to {max_words} words. Received: {len(modules)} "
            "files with none. Name other packages."
        )
    return _collection(corpus, paragraphs, splits)


def _functions(
    modules: Sequence[PythonModule],
) -> Iterator[tuple[str, PythonDefinition]]:
    for module in modules:
        split = split_of_module(module.name)
        for definition in module.definitions:
            if not definition.is_class:
                yield split, definition


def _unique(name: str, taken: Mapping[str, str]) -> str:
    """Number the later ones of several definitions of one name."""
    unique, count = name, 1
    while unique in taken:
        count += 1
        unique = f"{name}#{count}"
    return unique


def _collection(
    corpus: dict[str, str], paragraphs: dict[str, str], splits: dict[str, str]
) -> Collection:
    # Compared as words: "Return x" and "Return `x`." are the same question.
    keys = {
        document_id: split_identifiers(text)
        for document_id, text in paragraphs.items()
    }
    uses = Counter(keys.values())
    queries: dict[str, str] = {}
    first_use: dict[str, str] = {}
    qrels: dict[str, Qrels] = {"train": {}, "dev": {}, "test": {}}
    for document_id, paragraph in paragraphs.items():
        split, key = splits[document_id], keys[document_id]
        if uses[key] > 1 and split != "train":
            continue
        query_id = first_use.setdefault(key, f"q:{document_id}")
        queries.setdefault(query_id, paragraph)
        qrels[split].setdefault(query_id, {})[document_id] = 1
    _LOGGER.info(
        "mined %d functions; queries: %s",
        len(corpus),
        ", ".join(f"{len(part)} {split}" for split, part in qrels.items()),
    )
    return Collection(corpus=corpus, queries=queries, qrels=qrels)
