"""Reading `corpus.jsonl` and `queries.jsonl` of a BEIR folder."""

import json
import re
from pathlib import Path
from typing import Any

from tf_samtone.data._text_lines import read_lines
from tf_samtone.errors import DataError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def read_documents(path: Path) -> dict[str, str]:
    """Reads document id → `(title + " " + text).strip()`, in file order.

    Args:
        path: JSON lines with `_id`, `text` and optionally `title`.

    Raises:
        DataError: names the file and line.
    """
    return _read(path, with_title=True)


def read_queries(path: Path) -> dict[str, str]:
    """Reads query id → text, in file order; a text may be empty.

    Args:
        path: JSON lines with `_id` and `text`.

    Raises:
        DataError: names the file and line.
    """
    return _read(path, with_title=False)


def _read(path: Path, with_title: bool) -> dict[str, str]:
    texts: dict[str, str] = {}
    first_line: dict[str, int] = {}
    for number, line in read_lines(path):
        place = f"{path}:{number}"
        record = _record(place, line)
        identifier = _string(place, record, "_id")
        _check_id(place, identifier)
        if identifier in texts:
            raise DataError(
                f"Expected every `_id` once. Received: {place}: "
                f"_id={identifier!r} again, first seen on line "
                f"{first_line[identifier]}. Drop or rename one of the two."
            )
        text = _string(place, record, "text")
        # Some exports write a missing title as null.
        if with_title and record.get("title") is not None:
            text = f"{_string(place, record, 'title')} {text}".strip()
        elif with_title:
            text = text.strip()
        texts[identifier] = _LONE_SURROGATE.sub("\ufffd", text)
        first_line[identifier] = number
    return texts


def _record(place: str, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise DataError(
            f"Expected one JSON object per line. Received: {place}: {error}. "
            f"The line starts with {line[:40]!r}. Repair that line."
        ) from error
    if not isinstance(record, dict):
        raise DataError(
            f"Expected one JSON object per line. Received: {place}: a "
            f"{type(record).__name__}. Write it as "
            '{"_id": ..., "text": ...}.'
        )
    return record


def _string(place: str, record: dict[str, Any], field: str) -> str:
    if field not in record:
        raise DataError(
            f"Expected a field `{field}`. Received: {place}: only "
            f"{sorted(record)}. Add the field; a text may be empty."
        )
    value = record[field]
    if not isinstance(value, str):
        raise DataError(
            f"Expected `{field}` to be a string. Received: {place}: "
            f"{field}={value!r}. Write it in quotes; a text may be empty."
        )
    return value


def _check_id(place: str, identifier: str) -> None:
    # Runs and qrels are columns separated by white space.
    valid = identifier and not re.search(r"\s|[\ud800-\udfff]", identifier)
    if not valid:
        raise DataError(
            "Expected `_id` to be at least one character without white "
            f"space. Received: {place}: _id={identifier!r}. Rename it here "
            "and in the qrels."
        )
