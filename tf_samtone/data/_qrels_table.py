"""Reading one `qrels/<split>.tsv` of a BEIR folder."""

import re
from collections.abc import Container
from pathlib import Path

from tf_samtone.data._text_lines import read_lines
from tf_samtone.errors import DataError

_HEADER = ["query-id", "corpus-id", "score"]
_INTEGER = re.compile(r"[+-]?[0-9]+")


def read_qrels_table(
    path: Path,
    query_ids: Container[str],
    document_ids: Container[str],
) -> dict[str, dict[str, int]]:
    """Reads query id → document id → grade, in file order.

    The header line `query-id`, `corpus-id`, `score` may be present or not.
    A judgment may be repeated with the same grade.

    Args:
        path: tab-separated file of three columns.
        query_ids: the known queries.
        document_ids: the known documents.

    Raises:
        DataError: names the file and line.
    """
    qrels: dict[str, dict[str, int]] = {}
    first = True
    for number, line in read_lines(path):
        place = f"{path}:{number}"
        fields = [field.strip() for field in line.split("\t")]
        is_header = first and _is_header(fields)
        first = False
        if is_header:
            continue
        query_id, document_id, grade = _judgment(place, fields)
        _check_known(place, "query", query_id, query_ids)
        _check_known(place, "document", document_id, document_ids)
        grades = qrels.setdefault(query_id, {})
        if grades.setdefault(document_id, grade) != grade:
            raise DataError(
                f"Expected one grade per query and document. Received: "
                f"{place}: {grade} for {query_id!r} and {document_id!r}, "
                f"before it {grades[document_id]}. Keep one of the two."
            )
    if not qrels:
        raise DataError(
            f"Expected judgments after the header. Received: {path}, which "
            "has none. Download or write the file again."
        )
    return qrels


def _is_header(fields: list[str]) -> bool:
    return [field.lower().replace("_", "-") for field in fields] == _HEADER


def _judgment(place: str, fields: list[str]) -> tuple[str, str, int]:
    if len(fields) != len(_HEADER):
        raise DataError(
            "Expected three columns separated by tabs: query-id, corpus-id, "
            f"score. Received: {place}: {len(fields)} columns {fields}. "
            "Rewrite the line."
        )
    query_id, document_id, grade = fields
    if not _INTEGER.fullmatch(grade):
        raise DataError(
            f"Expected an integer score. Received: {place}: score={grade!r}. "
            "Write a whole number, e.g. 1, or the header "
            f"{_HEADER} if this is one."
        )
    return query_id, document_id, int(grade)


def _check_known(
    place: str, kind: str, identifier: str, known: Container[str]
) -> None:
    if identifier not in known:
        raise DataError(
            f"Expected the id of a known {kind}. Received: {place}: "
            f"{identifier!r}. Add that {kind} to the collection or drop the "
            "line."
        )
