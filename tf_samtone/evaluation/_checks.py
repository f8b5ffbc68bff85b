"""Checks of runs and qrels, shared by evaluation and TREC files."""

import math
from collections.abc import Mapping
from typing import Any

from tf_samtone.errors import InvalidInputError

__all__ = ["checked_qrels", "checked_run"]


def checked_run(
    run: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, float]]:
    """Return the run with Python floats; refuse NaN and Inf.

    pytrec_eval ranks NaN somewhere without saying so, and accepts no NumPy
    scalars.
    """
    return {
        _checked_id(query_id): {
            _checked_id(document_id): _checked_score(
                query_id, document_id, score
            )
            for document_id, score in scores.items()
        }
        for query_id, scores in run.items()
    }


def checked_qrels(
    qrels: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, int]]:
    """Return the qrels with Python ints; refuse other relevances."""
    if not qrels:
        raise InvalidInputError(
            "Expected judgments of at least one query. Received: qrels={}. "
            "Check the split and the path of the qrels."
        )
    return {
        _checked_id(query_id): {
            _checked_id(document_id): _checked_relevance(
                query_id, document_id, relevance
            )
            for document_id, relevance in judgments.items()
        }
        for query_id, judgments in qrels.items()
    }


def _checked_id(identifier: Any) -> str:
    if not isinstance(identifier, str) or not identifier:
        raise InvalidInputError(
            "Expected ids to be non-empty str. Received: "
            f"id={identifier!r}. Convert ids with str()."
        )
    if "\x00" in identifier:
        # trec_eval compares C strings, which end at a NUL.
        raise InvalidInputError(
            f"Expected ids without NUL. Received: id={identifier!r}. Rename "
            "the document or query."
        )
    return str(identifier)


def _checked_score(query_id: str, document_id: str, score: Any) -> float:
    try:
        value = float(score)
    except (TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInputError(
            f"Expected finite scores. Received: score={score!r} of document "
            f"{document_id!r}, query {query_id!r}. Check the encoder."
        )
    return value


def _checked_relevance(query_id: str, document_id: str, relevance: Any) -> int:
    try:
        value = int(relevance)
        valid = value == relevance
    except (TypeError, ValueError, OverflowError):
        valid = False
    if not valid:
        raise InvalidInputError(
            f"Expected integer relevances. Received: relevance={relevance!r} "
            f"of document {document_id!r}, query {query_id!r}. Use 0, 1, "
            "2, ..."
        )
    return value
