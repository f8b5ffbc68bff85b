"""Folders of checkpoints: complete or absent, checked at load, rotating."""

import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from tf_samtone._files import (
    atomic_directory,
    manifest_fields,
    read_manifest,
    recover_leftovers,
    write_manifest,
)
from tf_samtone._version import __version__
from tf_samtone.errors import CorruptFileError, TrainingError

__all__ = ["Checkpoint", "CheckpointStore"]

KIND = "training_checkpoint"
FORMAT_VERSION = 1
_STATE = "state.json"
_SUFFIX = ".safetensors"
_FOLDER = re.compile(r"step-(\d{8,})")
_DAMAGED = "damaged-"

_LOGGER = logging.getLogger("tf_samtone")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What was read from one folder.

    Attributes:
        path: the folder.
        step: int, as given to `CheckpointStore.save`.
        tensors: dict of `"group/name"` to array.
        state: dict of JSON values.
    """

    path: Path
    step: int
    tensors: dict[str, np.ndarray]
    state: dict[str, Any]


class CheckpointStore:
    """Writes, rotates and reads checkpoints, one folder `step-*` each.

    A folder holds one safetensors file per group of tensors, `state.json`, and
    a manifest with the SHA-256 of each file. It is written under another name,
    flushed to disk and renamed, so a killed process or a full disk leaves the
    checkpoints of before. Old ones are deleted when the new one is complete.

    Args:
        directory: folder of the checkpoints; made when first needed.
        keep: int, at least 1. Newest checkpoints that are kept. Defaults to
            `2`.
    """

    def __init__(
        self, directory: str | os.PathLike[str], *, keep: int = 2
    ) -> None:
        self.directory = Path(directory)
        self.keep = keep

    def save(
        self,
        step: int,
        tensors: Mapping[str, np.ndarray],
        state: Mapping[str, Any],
        *,
        metric: float | None = None,
    ) -> Path:
        """Writes one checkpoint, then deletes those that are too old.

        Args:
            step: int >= 0. Names the folder; the same step is replaced.
            tensors: mapping from `"group/name"` to array.
            state: mapping of JSON values.
            metric: float or `None`. Higher is better; the checkpoint with the
                best one is kept however old. Defaults to `None`.

        Returns:
            The folder.

        Raises:
            TrainingError: if the checkpoint cannot be written, e.g. to a full
                disk. Those of before are as they were.
        """
        final = self.directory / f"step-{step:08d}"
        try:
            with atomic_directory(final, overwrite=True) as folder:
                for group, arrays in _by_group(tensors).items():
                    save_file(arrays, folder / f"{group}{_SUFFIX}")
                text = json.dumps(dict(state), indent=2)
                (folder / _STATE).write_text(text + "\n", encoding="utf-8")
                write_manifest(
                    folder,
                    kind=KIND,
                    format_version=FORMAT_VERSION,
                    fields={
                        "step": step,
                        "metric": metric,
                        "tf_samtone_version": __version__,
                    },
                )
        except (OSError, SafetensorError) as error:
            raise self._not_written(final, tensors, error) from error
        self._rotate()
        return final

    def latest(self) -> Checkpoint | None:
        """Reads the newest intact checkpoint.

        Damaged ones are renamed to `damaged-step-*` if there is an intact one
        before them, and the log says so. They are deleted when the next
        checkpoint is complete.

        Returns:
            `Checkpoint`, or `None` if there is none at all.

        Raises:
            CorruptFileError: if there are checkpoints, none of them intact.
            MismatchError: if one was written by a newer version.
        """
        damaged: dict[Path, CorruptFileError] = {}
        for path in self._folders():
            try:
                checkpoint = _read(path)
            except CorruptFileError as error:
                damaged[path] = error
                continue
            for bad, reason in damaged.items():
                _LOGGER.warning(
                    "Checkpoint %s is damaged (%s) Going on from the one "
                    "before, %s.",
                    bad,
                    reason,
                    path,
                )
                _set_aside(bad)
            return checkpoint
        if damaged:
            newest, reason = next(iter(damaged.items()))
            raise CorruptFileError(
                f"Expected an intact checkpoint in {self.directory}. Received: "
                f"{len(damaged)} damaged, the newest {newest.name}: {reason} "
                "Restore the folder, or delete it to train from the start."
            ) from reason
        return None

    def recover(self) -> None:
        """Deletes what a killed process left unfinished."""
        recover_leftovers(self.directory)

    def _folders(self) -> list[Path]:
        """Returns all checkpoints, the newest first."""
        if not self.directory.is_dir():
            return []
        found = [
            p for p in self.directory.iterdir() if _FOLDER.fullmatch(p.name)
        ]
        return sorted(found, key=_step, reverse=True)

    def _rotate(self) -> None:
        folders = self._folders()
        kept = set(folders[: self.keep])
        metrics = {path: _metric(path) for path in folders}
        best = max(
            (path for path in folders if metrics[path] is not None),
            # Of equal ones the first, as in early stopping.
            key=lambda path: (metrics[path], -_step(path)),
            default=None,
        )
        damaged = self.directory.glob(f"{_DAMAGED}*")
        for path in [*folders, *damaged]:
            if path not in kept and path != best:
                shutil.rmtree(path, ignore_errors=True)

    def _not_written(
        self,
        final: Path,
        tensors: Mapping[str, np.ndarray],
        error: Exception,
    ) -> TrainingError:
        size = sum(array.nbytes for array in tensors.values()) / 2**20
        good = [path.name for path in self._folders()]
        last = (
            f"the last good one is {good[0]}" if good else "there is none yet"
        )
        return TrainingError(
            f"Expected to write a checkpoint of {size:.1f} MiB to {final}. "
            f"Received: {error}. Earlier checkpoints are untouched; {last}. "
            "Make room (or correct the folder's permissions) and resume."
        )


def _read(path: Path) -> Checkpoint:
    fields = read_manifest(path, kind=KIND, supported_version=FORMAT_VERSION)
    tensors = {
        f"{file.name.removesuffix(_SUFFIX)}/{name}": array
        for file in sorted(path.glob(f"*{_SUFFIX}"))
        for name, array in load_file(file).items()
    }
    state = json.loads((path / _STATE).read_text(encoding="utf-8"))
    return Checkpoint(
        path=path, step=fields["step"], tensors=tensors, state=state
    )


def _by_group(
    tensors: Mapping[str, np.ndarray],
) -> dict[str, dict[str, np.ndarray]]:
    groups: dict[str, dict[str, np.ndarray]] = {}
    for name, array in tensors.items():
        group, _, rest = name.partition("/")
        # safetensors writes the memory as it lies.
        contiguous = np.require(array, requirements="C")
        groups.setdefault(group, {})[rest] = contiguous
    return groups


def _step(path: Path) -> int:
    match = _FOLDER.fullmatch(path.name)
    return int(match[1]) if match else -1


def _metric(path: Path) -> float | None:
    try:
        metric = manifest_fields(path).get("metric")
    except CorruptFileError:
        return None
    return None if metric is None else float(metric)


def _set_aside(path: Path) -> None:
    target = path.with_name(_DAMAGED + path.name)
    shutil.rmtree(target, ignore_errors=True)
    os.rename(path, target)
