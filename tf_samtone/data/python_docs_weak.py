"""Weakly related text pairs from the sources of installed Python packages.

The first of two training stages needs many pairs, not clean ones (GTR, Ni et
al., 2021, https://arxiv.org/abs/2112.07899). Comments, names and docstrings
give them for nothing, also where a function has no docstring.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tf_samtone.data.pair import Pair
from tf_samtone.data.python_module import PythonDefinition, PythonModule
from tf_samtone.data.python_sources import (
    DEFAULT_PACKAGES,
    read_python_modules,
    split_of_module,
)
from tf_samtone.data.python_texts import (
    docstring_sentences,
    document_text,
    first_paragraph,
    split_identifiers,
)
from tf_samtone.errors import InvalidInputError

__all__ = ["WEAK_KINDS", "weak_pairs"]

_LOGGER = logging.getLogger("tf_samtone")

WEAK_KINDS = (
    "comment_to_code",
    "name_to_code",
    "name_to_docstring",
    "sentence_to_code",
    "sentence_to_rest",
)

_MIN_WORDS = 3
_MAX_QUERY_WORDS = 40
# Encoders read about a hundred tokens; whole classes would only fill memory.
_MAX_DOCUMENT_CHARACTERS = 1000


def weak_pairs(
    packages: Sequence[str] = DEFAULT_PACKAGES,
    *,
    roots: Mapping[str, str | os.PathLike[str]] | None = None,
    modules: Sequence[PythonModule] | None = None,
    kinds: Sequence[str] = WEAK_KINDS,
) -> list[Pair]:
    """Mine pairs from the training files, for a first training stage.

    - `comment_to_code`: a block of comment lines, the code below it;
    - `name_to_code`: a name as words, the signature and body without it;
    - `name_to_docstring`: a name as words, the docstring;
    - `sentence_to_code`: each sentence of a docstring, name and code;
    - `sentence_to_rest`: each sentence of a docstring, its other sentences
      (the inverse cloze task, Lee et al., 2019,
      https://arxiv.org/abs/1906.00300).

    Nothing comes from the files that `read_python_docs` holds out, and no
    query equals a first paragraph of theirs.

    Args:
        packages: see `read_python_docs`.
        roots: see `read_python_docs`.
        modules: result of `read_python_modules`, to parse only once.
            Defaults to `None`.
        kinds: which of `WEAK_KINDS` to mine. Defaults to all.

    Returns:
        list of `Pair` without ids, in source order, each pair once.

    Raises:
        InvalidInputError: if a kind is unknown or a package not installed.
    """
    unknown = sorted(set(kinds) - set(WEAK_KINDS))
    if unknown or not kinds:
        raise InvalidInputError(
            f"Expected `kinds` to be some of {WEAK_KINDS}. Received: "
            f"kinds={tuple(kinds)!r}. Choose from these."
        )
    if modules is None:
        modules = read_python_modules(packages, roots=roots)
    held_out = {
        split_identifiers(first_paragraph(definition.docstring))
        for module in modules
        if split_of_module(module.name) != "train"
        for definition in module.definitions
    }
    counts: Counter[str] = Counter()
    pairs: dict[tuple[str, str], None] = {}
    for module in modules:
        if split_of_module(module.name) == "train":
            for kind, query, document in _pairs_of_module(module, kinds):
                document = document[:_MAX_DOCUMENT_CHARACTERS]
                pair = (query, document)
                if pair not in pairs and _fits(kind, *pair, held_out):
                    pairs[pair] = None
                    counts[kind] += 1
    _LOGGER.info(
        "mined %d weak pairs: %s",
        len(pairs),
        ", ".join(f"{counts[kind]} {kind}" for kind in kinds),
    )
    return [Pair(query, document) for query, document in pairs]


def _fits(kind: str, query: str, document: str, held_out: set[str]) -> bool:
    words = split_identifiers(query)
    least = 1 if kind.startswith("name") else _MIN_WORDS
    return (
        least <= len(words.split()) <= _MAX_QUERY_WORDS
        and len(document.split(None, _MIN_WORDS)) >= _MIN_WORDS
        and words not in held_out
    )


def _pairs_of_module(
    module: PythonModule, kinds: Sequence[str]
) -> Iterator[tuple[str, str, str]]:
    if "comment_to_code" in kinds:
        for comment, code in module.comments:
            yield "comment_to_code", comment, code
    for definition in module.definitions:
        for kind, query, document in _pairs_of_definition(definition):
            if kind in kinds:
                yield kind, query, document


def _pairs_of_definition(
    definition: PythonDefinition,
) -> Iterator[tuple[str, str, str]]:
    name = split_identifiers(definition.name.rpartition(".")[2])
    code = f"{definition.signature}\n{definition.code}"
    yield "name_to_code", name, code
    if not definition.docstring:
        return
    yield "name_to_docstring", name, definition.docstring
    text = document_text(definition)
    sentences = docstring_sentences(definition.docstring)
    for position, sentence in enumerate(sentences):
        yield "sentence_to_code", sentence, text
        others = sentences[:position] + sentences[position + 1 :]
        yield "sentence_to_rest", sentence, " ".join(others)
