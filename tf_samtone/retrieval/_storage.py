"""What all saved indexes share: the folder, the ids and the manifest."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

from tf_samtone import _files
from tf_samtone.errors import (
    CorruptFileError,
    MismatchError,
    OutputExistsError,
)

__all__ = ["check_model", "load_index_folder", "save_index_folder"]

FORMAT_VERSION = 1
_IDS_NAME = "ids.jsonl"


@contextlib.contextmanager
def save_index_folder(
    directory: str | os.PathLike[str],
    *,
    kind: str,
    ids: list[str],
    fields: dict[str, Any],
    overwrite: bool,
) -> Iterator[pathlib.Path]:
    """Yield a folder for the arrays; add ids and manifest at the end.

    The folder becomes `directory` only if everything succeeded. Overwriting
    replaces a saved folder of this library and nothing else, so that a wrong
    path cannot delete other files.
    """
    target = pathlib.Path(directory)
    if (
        overwrite
        and target.is_dir()
        and any(target.iterdir())
        and not (target / _files.MANIFEST_NAME).is_file()
    ):
        raise OutputExistsError(
            "Expected overwrite=True to replace a saved index. Received: "
            f"{target}, which has no {_files.MANIFEST_NAME}. Choose another "
            "folder or empty this one yourself."
        )
    with _files.atomic_directory(target, overwrite=overwrite) as folder:
        yield folder
        with open(folder / _IDS_NAME, "w", encoding="utf-8") as file:
            # ASCII escapes keep ids with line separators on one line.
            file.writelines(json.dumps(name) + "\n" for name in ids)
        _files.write_manifest(
            folder,
            kind=kind,
            format_version=FORMAT_VERSION,
            fields={**fields, "count": len(ids)},
        )


def load_index_folder(
    directory: str | os.PathLike[str], *, kind: str
) -> tuple[dict[str, Any], list[str]]:
    """Verify a saved index; return the manifest's fields and the ids."""
    fields = _files.read_manifest(
        directory, kind=kind, supported_version=FORMAT_VERSION
    )
    path = pathlib.Path(directory) / _IDS_NAME
    with open(path, encoding="utf-8") as file:
        ids = [json.loads(line) for line in file]
    if len(ids) != fields["count"]:
        raise CorruptFileError(
            f"Expected {fields['count']} ids in {path}. Received: "
            f"{len(ids)}. Rebuild the index."
        )
    return fields, ids


def check_model(
    directory: str | os.PathLike[str],
    fields: dict[str, Any],
    *,
    model_fingerprint: str | None,
    dim: int | None,
) -> None:
    """Raise unless the index was made by the model that will query it."""
    stored = fields["model_fingerprint"]
    if model_fingerprint is not None and model_fingerprint != stored:
        raise MismatchError(
            f"Expected the index {directory} to be made by the model with "
            f"fingerprint {model_fingerprint!r}. Received: an index made "
            f"by {stored!r}. Encode the corpus again with this model, or "
            "load the model that made the index."
        )
    if dim is not None and dim != fields["dim"]:
        raise MismatchError(
            f"Expected the index {directory} to have dim={dim}. Received: "
            f"dim={fields['dim']}. Use the model that made the index."
        )
