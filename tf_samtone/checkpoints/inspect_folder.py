"""What a folder of a model is, found out without loading it."""

import os
import pathlib
from collections.abc import Callable

from tf_samtone._files import MANIFEST_NAME, manifest_kind
from tf_samtone.checkpoints._findings import Findings
from tf_samtone.checkpoints._hugging_face_config import is_hugging_face_folder
from tf_samtone.checkpoints._inspect_hugging_face import (
    inspect_hugging_face,
    inspect_sentence_transformers,
)
from tf_samtone.checkpoints._inspect_keras_hub import (
    inspect_keras_hub_model,
    inspect_keras_hub_t5,
)
from tf_samtone.checkpoints._inspect_saved import (
    inspect_manifest,
    inspect_saved_model,
)
from tf_samtone.checkpoints._inspect_t5x import inspect_t5x
from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._sbert_modules import (
    is_sentence_transformers_folder,
)
from tf_samtone.checkpoints._t5x_arrays import is_t5x_checkpoint
from tf_samtone.checkpoints.folder_report import FolderReport
from tf_samtone.checkpoints.keras_hub_folder import is_our_keras_hub_preset
from tf_samtone.errors import InvalidInputError, SamToNeError

__all__ = ["FOLDER_KINDS", "inspect_folder"]

# What `FolderReport.kind` can be.
FOLDER_KINDS = {
    "dual_encoder": "a dual encoder of save_to_preset",
    "sentence_transformers": "a model of sentence-transformers",
    "keras_hub": "a dual encoder as a KerasHub preset",
    "hugging_face": "a T5 of Hugging Face transformers",
    "keras_hub_t5": "a T5 preset of KerasHub",
    "t5x": "a checkpoint of t5x",
    "run": "the output of samtone-train",
    "training_checkpoint": "a checkpoint inside the output of samtone-train",
    "saved_model": "a SavedModel of TensorFlow",
    "bm25_index": "an index of keywords",
    "exact_index": "an index for exact search",
    "scann_index": "an index for approximate search",
    "unknown": "nothing that this library reads",
}
_FROM_PRESET = "tf_samtone.models.DualEncoder.from_preset"
_LOAD_INDEX = "tf_samtone.retrieval.load_index"
_INSPECTIONS: dict[str, tuple[Callable[[Findings], None], str | None]] = {
    "dual_encoder": (inspect_manifest, _FROM_PRESET),
    "sentence_transformers": (inspect_sentence_transformers, _FROM_PRESET),
    "keras_hub": (inspect_keras_hub_model, _FROM_PRESET),
    "hugging_face": (inspect_hugging_face, _FROM_PRESET),
    "keras_hub_t5": (inspect_keras_hub_t5, _FROM_PRESET),
    "t5x": (inspect_t5x, _FROM_PRESET),
    "training_checkpoint": (inspect_manifest, None),
    "saved_model": (inspect_saved_model, "tf.saved_model.load"),
    "bm25_index": (inspect_manifest, _LOAD_INDEX),
    "exact_index": (inspect_manifest, _LOAD_INDEX),
    "scann_index": (inspect_manifest, _LOAD_INDEX),
}
_MODEL = "model"
_NUM_LISTED = 8


def inspect_folder(directory: str | os.PathLike[str]) -> FolderReport:
    """Find out what a folder is and whether it can be loaded.

    Nothing is loaded, and neither TensorFlow nor torch is imported. Names,
    shapes and types of all tensors, configs, vocabularies and, where there are
    any, checksums are checked as when loading; what is wrong becomes a
    problem of the report. Only the values of the weights are not looked at, so
    that NaN in them goes unseen. Files of weights are read once, for their
    digest.

    Args:
        directory: a folder of any kind in `FOLDER_KINDS`.

    Returns:
        `FolderReport`.

    Raises:
        InvalidInputError: if there is no such folder.
    """
    root = pathlib.Path(directory)
    if not root.is_dir():
        raise InvalidInputError(
            f"Expected a folder. Received: directory={str(directory)!r}, "
            f"{'a file' if root.exists() else 'which is absent'}. Check the "
            "path."
        )
    findings = Findings(root)
    kind = "unknown"
    with findings.collecting():
        kind = _kind(root)
        if kind == "unknown":
            raise InvalidInputError(_unknown_message(root))
    call, place = None, root
    if kind == "run":
        place = root / _MODEL
        findings = Findings(place)
        inspect, call = _INSPECTIONS["dual_encoder"]
        inspect(findings)
    elif kind in _INSPECTIONS:
        inspect, call = _INSPECTIONS[kind]
        inspect(findings)
    return FolderReport(
        directory=str(directory),
        kind=kind,
        description=FOLDER_KINDS[kind],
        loads_with=f"{call}({str(place)!r})" if call else None,
        facts=findings.facts,
        problems=tuple(findings.problems),
    )


def _kind(root: pathlib.Path) -> str:
    """Return a key of `FOLDER_KINDS`, in the order of `from_preset`."""
    if (root / MANIFEST_NAME).is_file():
        kind = manifest_kind(root)
        return kind if kind in _INSPECTIONS else "unknown"
    found = (
        ("sentence_transformers", is_sentence_transformers_folder(root)),
        ("keras_hub", is_our_keras_hub_preset(root)),
        ("t5x", is_t5x_checkpoint(root)),
        ("hugging_face", is_hugging_face_folder(root)),
        ("keras_hub_t5", _has_keras_config(root)),
        ("saved_model", (root / "saved_model.pb").is_file()),
        ("run", (root / "recipe.json").is_file()),
    )
    return next((kind for kind, is_one in found if is_one), "unknown")


def _has_keras_config(root: pathlib.Path) -> bool:
    path = root / "config.json"
    return path.is_file() and "registered_name" in read_json_object(path)


def _unknown_message(root: pathlib.Path) -> str:
    names = sorted(path.name for path in root.iterdir())
    known = [name for name in names if _is_known(root / name)]
    advice = (
        f"Pass one of its folders {known[:_NUM_LISTED]}."
        if known
        else "Check the path."
    )
    more = "..." if len(names) > _NUM_LISTED else ""
    return (
        f"Expected a folder of one of the kinds {list(_INSPECTIONS)}. "
        f"Received: {root} with {names[:_NUM_LISTED]}{more}. {advice}"
    )


def _is_known(path: pathlib.Path) -> bool:
    try:
        return path.is_dir() and _kind(path) != "unknown"
    except SamToNeError:
        return False
