"""Reading and writing of the JSON files beside weights."""

import json
import os
import pathlib
from typing import Any

from tf_samtone.errors import CorruptFileError


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the value in a JSON file.

    Args:
        path: the file.

    Returns:
        The decoded value.

    Raises:
        CorruptFileError: if the file is missing or is not UTF-8 JSON.
    """
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptFileError(
            f"Expected JSON in {path}. Received: {error!r}. Get the file again."
        ) from error


def read_json_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the object in a JSON file.

    Args:
        path: the file.

    Returns:
        The decoded object.

    Raises:
        CorruptFileError: if the file is not UTF-8 JSON with an object.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise CorruptFileError(
            f"Expected a JSON object in {path}. Received: "
            f"{type(value).__name__}. Get the file again."
        )
    return value


def write_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write a JSON file; equal values give equal bytes.

    Call it on the temporary folder of an atomic save.

    Args:
        path: the file. Its folder is there.
        value: what JSON can hold; keys are sorted.
    """
    text = json.dumps(
        value, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False
    )
    pathlib.Path(path).write_text(text + "\n", encoding="utf-8")
