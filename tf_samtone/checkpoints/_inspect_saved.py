"""Inspection of what this library itself has saved."""

import math
import pathlib
from typing import Any

from tf_samtone._files import manifest_fields, manifest_kind, read_manifest
from tf_samtone.checkpoints._findings import Findings
from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.errors import CorruptFileError, MismatchError
from tf_samtone.models.architecture_checks import check_architecture
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.preset_format import (
    CONFIG_FILE,
    FORMAT_VERSION,
    KIND,
)

__all__ = ["METADATA_FILE", "inspect_manifest", "inspect_saved_model"]

METADATA_FILE = "assets.extra/tf_samtone.json"
# The newest layout of each kind that this version reads.
_VERSIONS = {
    KIND: FORMAT_VERSION,
    "bm25_index": 1,
    "exact_index": 1,
    "scann_index": 1,
    "training_checkpoint": 1,
}
# What a config leaves out because it is the default.
_DEFAULTS = {"normalize": True, "query_prefix": "", "document_prefix": ""}


def inspect_manifest(findings: Findings) -> None:
    """Verify the checksums of a saved folder; find out what it is."""
    root = findings.root
    kind = None
    with findings.collecting():
        kind = manifest_kind(root)
        fields = manifest_fields(root)
        if kind != KIND:
            findings.facts |= fields
        read_manifest(root, kind=kind, supported_version=_VERSIONS.get(kind, 0))
    if kind == KIND:
        with findings.collecting():
            _add_dual_encoder(findings, root)
        findings.facts["fingerprint"] = fields.get("fingerprint")


def inspect_saved_model(findings: Findings) -> None:
    """Find out what `export_saved_model` has noted in a SavedModel."""
    path = findings.root / METADATA_FILE
    if path.is_file():
        with findings.collecting():
            findings.facts |= read_json_object(path)


def _add_dual_encoder(findings: Findings, root: pathlib.Path) -> None:
    path = root / CONFIG_FILE
    config = read_json_object(path)
    try:
        size = EncoderSize.of_arguments(config["encoder"])
        architecture, width = config["architecture"], config["projection_dim"]
        lengths = {n: config[n] for n in ("query_length", "document_length")}
    except (KeyError, TypeError) as error:
        raise CorruptFileError(
            f"Expected the config of a dual encoder in {path}. Received: "
            f"{error!r}. Save the model again."
        ) from error
    check_architecture(architecture)
    findings.facts["architecture"] = architecture
    findings.add_encoder(size)
    bias = config.get("projection_bias", False)
    findings.add_projection(
        width, bias=bias, activation=config.get("projection_activation")
    )
    count = findings.add_parameters(
        architecture, size, (size.hidden_dim + bias) * width
    )
    findings.facts |= {"pooling": "mean", **lengths}
    findings.facts |= {n: config.get(n, d) for n, d in _DEFAULTS.items()}
    findings.add_tokenizer(root, size)
    weights = KerasHubWeights(root)
    _check_count(weights, count)
    findings.add_weights(weights.files, _towers(weights.dtypes).values())


def _check_count(weights: KerasHubWeights, count: int) -> None:
    stored = sum(math.prod(s) for s in _towers(weights.shapes).values())
    if stored != count:
        raise MismatchError(
            f"Expected in {weights.path} the {count} weights that "
            f"{CONFIG_FILE} describes. Received: {stored}. Use the config "
            "that belongs to the weights."
        )


def _towers(tensors: dict[str, Any]) -> dict[str, Any]:
    """Leave out what a file of Keras holds beside the towers."""
    return {
        name: value
        for name, value in tensors.items()
        if any(part.endswith("tower") for part in name.split("/"))
    }
