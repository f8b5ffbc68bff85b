"""TREC run and qrels files.

    run     query-id Q0 document-id rank score tag
    qrels   query-id 0 document-id relevance

Fields are separated by white space. UTF-8 with or without a byte order mark
and any line ends are read; empty lines are ignored.
"""

import math
import os
import pathlib
from collections.abc import Iterator, Mapping

import numpy as np

from tf_samtone import _files
from tf_samtone.errors import (
    DataError,
    InvalidInputError,
    OutputExistsError,
)
from tf_samtone.evaluation._checks import checked_qrels, checked_run

__all__ = ["read_qrels", "read_run", "write_qrels", "write_run"]

PathLike = str | os.PathLike[str]


def read_run(path: PathLike) -> dict[str, dict[str, float]]:
    """Read a TREC run file; the rank column is ignored, as in trec_eval.

    Args:
        path: file with six fields a line.

    Returns:
        `{query id: {document id: score}}`.

    Raises:
        DataError: for a missing or empty file, or a malformed, non-finite or
            repeated line; the message names file and line.
    """
    run: dict[str, dict[str, float]] = {}
    for place, fields in _lines(path, "query-id Q0 document-id rank score tag"):
        query_id, _, document_id, _, score, _ = fields
        value = _parse_score(place, score)
        row = run.setdefault(query_id, {})
        _refuse_repeat(place, query_id, document_id, row)
        row[document_id] = value
    return run


def write_run(
    run: Mapping[str, Mapping[str, float]],
    path: PathLike,
    *,
    tag: str = "tf_samtone",
    overwrite: bool = False,
) -> None:
    """Write a TREC run file in the order in which trec_eval ranks it.

    Scores are written as float32 with 9 significant digits, the precision
    of trec_eval. Ranks start at 1; ties are by document id, descending.

    Args:
        run: `{query id: {document id: score}}`, finite scores.
        path: file to write.
        tag: str. Name of the system. Defaults to `"tf_samtone"`.
        overwrite: bool. Replace an existing file. Defaults to `False`.

    Raises:
        InvalidInputError: for NaN, or white space in an id or in `tag`.
        OutputExistsError: if the file exists.
    """
    _refuse_white_space("tag", tag)
    lines = []
    for query_id, scores in checked_run(run).items():
        _refuse_white_space("query id", query_id)
        rounded = {doc: np.float32(score) for doc, score in scores.items()}
        ranked = sorted(
            rounded, key=lambda doc: (rounded[doc], doc), reverse=True
        )
        for rank, document_id in enumerate(ranked, start=1):
            _refuse_white_space("document id", document_id)
            lines.append(
                f"{query_id} Q0 {document_id} {rank} "
                f"{rounded[document_id]:.9g} {tag}\n"
            )
    _write(path, lines, overwrite)


def read_qrels(path: PathLike) -> dict[str, dict[str, int]]:
    """Read a TREC qrels file.

    Args:
        path: file with four fields a line.

    Returns:
        `{query id: {document id: relevance}}`.

    Raises:
        DataError: for a missing or empty file, or a malformed or repeated
            line; the message names file and line.
    """
    qrels: dict[str, dict[str, int]] = {}
    for place, fields in _lines(path, "query-id 0 document-id relevance"):
        query_id, _, document_id, relevance = fields
        try:
            value = int(relevance)
        except ValueError as error:
            raise DataError(
                f"Expected an integer relevance at {place}. Received: "
                f"{relevance!r}. Use 0, 1, 2, ..."
            ) from error
        row = qrels.setdefault(query_id, {})
        _refuse_repeat(place, query_id, document_id, row)
        row[document_id] = value
    return qrels


def write_qrels(
    qrels: Mapping[str, Mapping[str, int]],
    path: PathLike,
    *,
    overwrite: bool = False,
) -> None:
    """Write a TREC qrels file.

    Args:
        qrels: `{query id: {document id: relevance}}`, integers.
        path: file to write.
        overwrite: bool. Replace an existing file. Defaults to `False`.

    Raises:
        InvalidInputError: for empty qrels, a relevance that is no integer,
            or white space in an id.
        OutputExistsError: if the file exists.
    """
    lines = []
    for query_id, judgments in checked_qrels(qrels).items():
        _refuse_white_space("query id", query_id)
        for document_id, relevance in judgments.items():
            _refuse_white_space("document id", document_id)
            lines.append(f"{query_id} 0 {document_id} {relevance}\n")
    _write(path, lines, overwrite)


def _lines(path: PathLike, layout: str) -> Iterator[tuple[str, list[str]]]:
    """Yield `(file:line, fields)` of every line that is not empty."""
    count = len(layout.split())
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"Expected a readable UTF-8 file. Received: {path}: {error}. "
            "Check the path."
        ) from error
    if not text.strip():
        raise DataError(
            f"Expected lines of `{layout}`. Received: {path}, which is "
            "empty. Check that it was written completely."
        )
    # Not str.splitlines, which also splits at characters inside of ids.
    for number, line in enumerate(text.split("\n"), start=1):
        fields = line.split()
        if not fields:
            continue
        if len(fields) != count:
            raise DataError(
                f"Expected {count} fields, `{layout}`, at {path}:{number}. "
                f"Received: {len(fields)} fields, {line.strip()!r}. Fix or "
                "remove the line."
            )
        yield f"{path}:{number}", fields


def _parse_score(place: str, score: str) -> float:
    try:
        value = float(score)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DataError(
            f"Expected a finite score at {place}. Received: {score!r}. Fix "
            "the program that wrote the run."
        )
    return value


def _refuse_repeat(
    place: str, query_id: str, document_id: str, row: Mapping[str, float]
) -> None:
    if document_id in row:
        raise DataError(
            f"Expected one line per query and document. Received: "
            f"{document_id!r} again for query {query_id!r} at {place}. "
            "Remove the duplicate."
        )


def _refuse_white_space(name: str, value: str) -> None:
    if value.split() != [value]:
        raise InvalidInputError(
            f"Expected a {name} without white space. Received: {value!r}. "
            "TREC files are separated by white space: rename it."
        )


def _write(path: PathLike, lines: list[str], overwrite: bool) -> None:
    if not overwrite and os.path.lexists(path):
        raise OutputExistsError(
            f"Expected a new file. Received: {path}, which exists. Choose "
            "another name or pass overwrite=True."
        )
    _files.atomic_write_text(path, "".join(lines))
