"""Atomic writes, checksums and manifests shared by every saved artefact.

A folder or file appears under its final name complete or not at all: it is
written to a temporary sibling, flushed to disk and renamed. A manifest lists
the SHA-256 of every other file of a folder, so that one flipped byte is an
error at load and not a wrong answer later.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import re
import secrets
import shutil
from collections.abc import Iterator
from typing import Any

from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
    OutputExistsError,
)

__all__ = [
    "MANIFEST_NAME",
    "atomic_directory",
    "atomic_write_bytes",
    "atomic_write_text",
    "manifest_fields",
    "manifest_kind",
    "read_manifest",
    "recover_leftovers",
    "sha256_of_file",
    "write_manifest",
]

MANIFEST_NAME = "manifest.json"
# Pickle runs code when it is loaded, and some readers load one on sight.
_PICKLE_SUFFIXES = frozenset({".pkl", ".pickle"})

_LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<label>tmp|old)-[0-9a-f]{12}")

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def atomic_directory(
    path: PathLike, *, overwrite: bool = False
) -> Iterator[pathlib.Path]:
    """Yield a temporary folder that becomes `path` when the block succeeds.

    If the block raises, the temporary folder is removed and `path` is as it
    was. A killed process can leave a hidden `.<name>.tmp-*` sibling, never a
    half-written `path`. With `overwrite` the old folder is moved aside first
    and deleted last; it is put back if the final rename fails.

    Args:
        path: final folder. Missing parents are created.
        overwrite: bool. Replace a non-empty folder, with **everything** in
            it. Defaults to `False`.

    Yields:
        Path of an empty folder beside `path`.

    Raises:
        OutputExistsError: if `path` is a file, or is a non-empty folder and
            `overwrite` is false. Raised before the block runs, and again at
            the end if another process filled `path` meanwhile.
    """
    final = pathlib.Path(os.path.realpath(path))
    _check_output_folder(final, overwrite)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = _sibling(final, "tmp")
    temporary.mkdir()
    try:
        yield temporary
        _sync_tree(temporary)
        _check_output_folder(final, overwrite)
        _move_into_place(temporary, final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def atomic_write_bytes(path: PathLike, data: bytes) -> None:
    """Write a file that appears complete or not at all.

    Args:
        path: final file; an existing file is replaced.
        data: bytes. The whole content.
    """
    final = pathlib.Path(os.path.realpath(path))
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = _sibling(final, "tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(final.parent)


def atomic_write_text(path: PathLike, text: str) -> None:
    """Write a UTF-8 file that appears complete or not at all.

    Args:
        path: final file; an existing file is replaced.
        text: str. The whole content; line ends are written as they are.
    """
    atomic_write_bytes(path, text.encode("utf-8"))


def recover_leftovers(directory: PathLike) -> None:
    """Clean up what a killed process left of atomic writes into a folder.

    Half-written temporaries are deleted. A folder that had been moved aside
    for its replacement is put back if the replacement never came.

    Args:
        directory: folder that no other process is writing to; may be absent.
    """
    root = pathlib.Path(directory)
    if not root.is_dir():
        return
    for path in sorted(root.iterdir()):
        match = _LEFTOVER.fullmatch(path.name)
        if match is None:
            continue
        final = path.with_name(match["name"])
        if match["label"] == "old" and not final.exists():
            os.rename(path, final)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def sha256_of_file(path: PathLike) -> str:
    """Return the SHA-256 of a file as 64 lowercase hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(
    directory: PathLike,
    *,
    kind: str,
    format_version: int,
    fields: dict[str, Any],
) -> None:
    """Write `manifest.json` with the checksum of every other file.

    Call it last, inside `atomic_directory`.

    Args:
        directory: folder to describe, with its subfolders.
        kind: str. What the folder holds, e.g. `"exact_index"`.
        format_version: int. Version of the layout, from 1.
        fields: dict of JSON values. Returned unchanged by `read_manifest`.

    Raises:
        InvalidInputError: if the folder holds a pickle file.
    """
    root = pathlib.Path(directory)
    names = _files_below(root)
    pickles = _pickles(names)
    if pickles:
        raise InvalidInputError(
            "Expected a folder without pickle files. Received: "
            f"{pickles} in {root}. Store the data as .npy or JSON."
        )
    files = {
        name: {
            "bytes": (root / name).stat().st_size,
            "sha256": sha256_of_file(root / name),
        }
        for name in names
        if name != MANIFEST_NAME
    }
    body = {
        "kind": kind,
        "format_version": format_version,
        "fields": fields,
        "files": files,
    }
    text = json.dumps(
        {**body, "manifest_sha256": _body_digest(body)},
        indent=2,
        sort_keys=True,
        allow_nan=False,
    )
    atomic_write_text(root / MANIFEST_NAME, text + "\n")


def manifest_kind(directory: PathLike) -> str:
    """Return what a saved folder holds, without reading its files.

    Raises:
        CorruptFileError: if the manifest is missing or damaged.
    """
    return str(_read_body(pathlib.Path(directory))["kind"])


def manifest_fields(directory: PathLike) -> dict[str, Any]:
    """Return the `fields` of a manifest, without reading the other files.

    Raises:
        CorruptFileError: if the manifest is missing or damaged.
    """
    return dict(_read_body(pathlib.Path(directory))["fields"])


def read_manifest(
    directory: PathLike, *, kind: str, supported_version: int
) -> dict[str, Any]:
    """Verify a saved folder and return the `fields` of its manifest.

    Every listed file must be there with its size and SHA-256. Other files
    (notes, for example) are ignored, except pickles, which are refused.

    Args:
        directory: folder written with `write_manifest`.
        kind: str. The kind that the caller can read.
        supported_version: int. Newest layout that the caller can read.

    Returns:
        The dict given to `write_manifest` as `fields`.

    Raises:
        CorruptFileError: if the manifest or a file is missing or damaged, or
            a pickle file was added.
        MismatchError: if the folder is of another kind or a newer version.
    """
    root = pathlib.Path(directory)
    body = _read_body(root)
    if body["kind"] != kind:
        raise MismatchError(
            f"Expected a folder of kind {kind!r}. Received: "
            f"kind={body['kind']!r} in {root}. Pass another folder or use "
            "the class that saved it."
        )
    version = body["format_version"]
    if not isinstance(version, int) or not 1 <= version <= supported_version:
        raise MismatchError(
            f"Expected format_version between 1 and {supported_version} of "
            f"{kind!r}. Received: format_version={version!r} in {root}. "
            "Install a newer tf_samtone or save the folder again."
        )
    present = _files_below(root)
    pickles = _pickles(present)
    if pickles:
        raise CorruptFileError(
            f"Expected no pickle files in {root}. Received: {pickles}. "
            "Loading one can run foreign code: delete it, and find out who "
            "added it."
        )
    for name, expected in body["files"].items():
        _check_file(root, name, expected, present)
    return dict(body["fields"])


def _check_file(
    root: pathlib.Path,
    name: str,
    expected: dict[str, Any],
    present: list[str],
) -> None:
    """Raise unless the file has the size and checksum of the manifest."""
    advice = "Copy the folder again or rebuild it."
    # Names are compared with a listing of the folder, so a manifest cannot
    # point outside of it.
    if name not in present:
        raise CorruptFileError(
            f"Expected the file {name!r} named by the manifest of {root}. "
            f"Received: no such file. {advice}"
        )
    size = (root / name).stat().st_size
    if size != expected["bytes"]:
        raise CorruptFileError(
            f"Expected {expected['bytes']} bytes in {root / name}. "
            f"Received: {size} bytes. {advice}"
        )
    digest = sha256_of_file(root / name)
    if digest != expected["sha256"]:
        raise CorruptFileError(
            f"Expected checksum sha256={expected['sha256']} of "
            f"{root / name}. Received: sha256={digest}. {advice}"
        )


def _read_body(root: pathlib.Path) -> dict[str, Any]:
    """Read the manifest and check it against its own checksum."""
    path = root / MANIFEST_NAME
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CorruptFileError(
            f"Expected a saved folder with {MANIFEST_NAME}. Received: {root}, "
            "which has none. Check the path; a folder without a manifest was "
            "not written by this library."
        ) from error
    except UnicodeDecodeError as error:
        raise _damaged_manifest(path, str(error)) from error
    try:
        body = json.loads(text)
        digest = body.pop("manifest_sha256")
        valid = digest == _body_digest(body)
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise _damaged_manifest(path, repr(error)) from error
    if not valid:
        raise _damaged_manifest(path, "its own checksum does not match")
    return dict(body)


def _damaged_manifest(path: pathlib.Path, reason: str) -> CorruptFileError:
    return CorruptFileError(
        f"Expected an intact manifest at {path}. Received: {reason}. Copy "
        "the folder again or rebuild it; manifests are not edited by hand."
    )


def _body_digest(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _files_below(root: pathlib.Path) -> list[str]:
    """Return the sorted POSIX paths of all files, relative to `root`."""
    return sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if not path.is_dir()
    )


def _pickles(names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if pathlib.PurePosixPath(name).suffix.lower() in _PICKLE_SUFFIXES
    ]


def _check_output_folder(path: pathlib.Path, overwrite: bool) -> None:
    if path.is_dir():
        if overwrite or not any(path.iterdir()):
            return
        raise OutputExistsError(
            f"Expected a new or empty folder. Received: {path}, which "
            "already holds files. Choose another folder or pass "
            "overwrite=True."
        )
    if path.exists() or path.is_symlink():
        raise OutputExistsError(
            f"Expected a folder. Received: {path}, which is a file. Choose "
            "another name or delete the file."
        )


def _sibling(path: pathlib.Path, label: str) -> pathlib.Path:
    return path.with_name(f".{path.name}.{label}-{secrets.token_hex(6)}")


def _move_into_place(temporary: pathlib.Path, final: pathlib.Path) -> None:
    """Rename `temporary` to `final`, replacing an old folder if there is one.

    A folder cannot be renamed onto a non-empty one, so the old one is moved
    aside for the moment between the two renames.
    """
    old = _sibling(final, "old") if final.exists() else None
    if old is not None:
        os.rename(final, old)
    try:
        os.rename(temporary, final)
    except OSError:
        if old is not None:
            os.rename(old, final)
        raise
    _sync_folder(final.parent)
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _sync_tree(root: pathlib.Path) -> None:
    for folder, _, names in os.walk(root):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                os.fsync(file.fileno())
        _sync_folder(pathlib.Path(folder))


def _sync_folder(path: pathlib.Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
