"""Inspection of Hugging Face and sentence-transformers folders."""

import pathlib

from tf_samtone.checkpoints._findings import Findings
from tf_samtone.checkpoints._hugging_face_config import (
    read_hugging_face_config,
)
from tf_samtone.checkpoints._hugging_face_layout import stored_tensors
from tf_samtone.checkpoints._sbert_model import (
    OWN_FILE,
    check_alike,
    check_dense_tensors,
    own_lengths,
    read_size,
    stored_architecture,
)
from tf_samtone.checkpoints._sbert_modules import SbertTower, read_towers
from tf_samtone.checkpoints._sbert_settings import SbertDense, read_optional
from tf_samtone.checkpoints._sbert_texts import read_lengths, read_prefixes
from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.models.architecture_checks import check_architecture
from tf_samtone.models.encoder_size import EncoderSize

__all__ = ["inspect_hugging_face", "inspect_sentence_transformers"]


def inspect_hugging_face(findings: Findings) -> None:
    """Find out what `load_hugging_face_t5` would read."""
    root = findings.root
    size = None
    with findings.collecting():
        size = EncoderSize.of_arguments(read_hugging_face_config(root))
        findings.add_encoder(size)
        findings.add_parameters("sde", size)
    findings.add_tokenizer(root, size)
    if size is not None:
        with findings.collecting():
            folder = _checked_encoder(root, size)
            findings.add_weights(folder.files, folder.dtypes.values())


def inspect_sentence_transformers(findings: Findings) -> None:
    """Find out what `load_sentence_transformers` would read."""
    root = findings.root
    with findings.collecting():
        towers = read_towers(root)
        own = read_optional(root / OWN_FILE)
        architecture = stored_architecture(towers, own) or "sde"
        findings.facts["architecture"] = architecture
        check_architecture(architecture)
        sizes = [read_size(tower) for tower in towers]
        _add_head(findings, architecture, sizes[0], towers[0].dense)
        findings.facts |= {"pooling": "mean", "normalize": towers[0].normalize}
        with findings.collecting():
            findings.facts |= read_lengths(towers) | own_lengths(own)
        with findings.collecting():
            findings.facts |= read_prefixes(root, towers)
        findings.add_tokenizer(towers[0].folder, sizes[0])
        if len(towers) == 2:
            with findings.collecting():
                check_alike(root, towers, sizes)
        _add_weights(findings, towers, sizes)


def _add_head(
    findings: Findings,
    architecture: str,
    size: EncoderSize,
    dense: SbertDense | None,
) -> None:
    findings.add_encoder(size)
    weights = 0
    if dense is None:
        findings.add_projection(0)
    else:
        weights = (dense.in_features + dense.use_bias) * dense.out_features
        findings.add_projection(
            dense.out_features,
            bias=dense.use_bias,
            activation=dense.activation,
        )
    findings.add_parameters(architecture, size, weights)


def _add_weights(
    findings: Findings, towers: list[SbertTower], sizes: list[EncoderSize]
) -> None:
    """Add the files of all modules; see if each has what it has to have."""
    files: list[pathlib.Path] = []
    dtypes: list[str] = []
    for tower, size in zip(towers, sizes, strict=True):
        with findings.collecting():
            folder = _checked_encoder(tower.folder, size)
            files += folder.files
            dtypes += folder.dtypes.values()
        with findings.collecting():
            if tower.dense is not None:
                folder = TensorFolder(tower.dense.folder)
                for name in check_dense_tensors(tower.dense, folder):
                    folder.check_float(name)
                files += folder.files
                dtypes += folder.dtypes.values()
    if files:
        with findings.collecting():
            findings.add_weights(files, dtypes)


def _checked_encoder(
    directory: pathlib.Path, size: EncoderSize
) -> TensorFolder:
    folder = TensorFolder(directory)
    for name, _ in stored_tensors(directory, folder, size):
        folder.check_float(name)
    return folder
