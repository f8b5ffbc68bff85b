"""From definitions to the texts that stand for them."""

import re

from tf_samtone.data.python_module import PythonDefinition

__all__ = [
    "docstring_sentences",
    "document_text",
    "first_paragraph",
    "is_query",
    "split_identifiers",
]

_SECTION = re.compile(
    r"\s*(Args?|Arguments?|Call arguments?|Params?|Parameters?|Attributes?"
    r"|Returns?|Yields?|Raises|Examples?|Usage|Notes?|References?"
    r"|>>>.*|```.*|\.\. .*|---+|===+|:(param|returns?|raises?|type)\b.*)"
    r"\s*:?\s*"
)
_SENTENCE_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z`\"'])|\n\s*\n")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"\w+")


def document_text(definition: PythonDefinition) -> str:
    """Return qualified name and signature on one line, then the code."""
    return f"{definition.name}({definition.signature})\n{definition.code}"


def first_paragraph(docstring: str) -> str:
    """Return the first paragraph of a docstring, on one line.

    A section heading ("Args:", "Returns:", a doctest, ...) ends it too.

    Args:
        docstring: str. Cleaned docstring.

    Returns:
        str, empty if the docstring starts with a section.
    """
    lines: list[str] = []
    for line in docstring.splitlines():
        is_section = _SECTION.fullmatch(line) is not None
        if is_section or (lines and not line.strip()):
            break
        lines.append(line)
    return " ".join(" ".join(lines).split())


def docstring_sentences(docstring: str) -> list[str]:
    """Cut a docstring at sentence ends and blank lines.

    Args:
        docstring: str. Cleaned docstring.

    Returns:
        list of non-empty sentences, each on one line.
    """
    parts = (" ".join(part.split()) for part in _SENTENCE_END.split(docstring))
    return [part for part in parts if part]


def is_query(text: str, min_words: int, max_words: int) -> bool:
    """Tell whether a paragraph has a fitting number of words.

    Args:
        text: str. Words are what white space separates; those without a
            letter do not count towards `min_words`.
        min_words: int, fewest words.
        max_words: int, most words.

    Returns:
        bool. `False` also for the placeholder "TODO ...".
    """
    words = text.split()
    spoken = sum(any(map(str.isalpha, word)) for word in words)
    return (
        spoken >= min_words
        and len(words) <= max_words
        and not text.startswith("TODO")
    )


def split_identifiers(text: str) -> str:
    """Write code as lower-case words, snake_case and CamelCase taken apart.

    Punctuation is dropped. Plain text passes too, so that queries and
    documents, dense and sparse retrieval, can all read the same words.

    >>> split_identifiers("os.makeDirs(exist_ok=True)")
    'os make dirs exist ok true'
    """
    spaced = _CAMEL.sub(" ", text.replace("_", " "))
    return " ".join(_WORD.findall(spaced)).lower()
