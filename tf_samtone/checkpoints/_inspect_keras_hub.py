"""Inspection of KerasHub's presets, and of those in its style."""

import pathlib

from tf_samtone.checkpoints._findings import Findings
from tf_samtone.checkpoints._keras_hub_config import (
    KERAS_HUB_CONFIG,
    read_layout_and_config,
)
from tf_samtone.checkpoints._keras_hub_model import (
    check_projection,
    check_surplus,
    check_twins,
    text_options,
    tower_folders,
)
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.checkpoints.keras_hub_folder import (
    KerasHubTower,
    read_architecture,
)
from tf_samtone.models.architecture_checks import check_architecture
from tf_samtone.models.encoder_size import EncoderSize

__all__ = ["inspect_keras_hub_model", "inspect_keras_hub_t5"]


def inspect_keras_hub_t5(findings: Findings) -> None:
    """Find out what `load_keras_hub_t5` would read from a folder."""
    root = findings.root
    size = None
    with findings.collecting():
        size = _read_size(root)
        findings.add_encoder(size)
        findings.add_parameters("sde", size)
    findings.add_tokenizer(root, size)
    if size is not None:
        with findings.collecting():
            weights = _checked_encoder(root, size)
            findings.add_weights(weights.files, weights.dtypes.values())


def inspect_keras_hub_model(findings: Findings) -> None:
    """Find out what `load_keras_hub_dual_encoder` would read."""
    root = findings.root
    with findings.collecting():
        architecture = read_architecture(root)
        findings.facts["architecture"] = architecture
        check_architecture(architecture)
        towers = [
            KerasHubTower.read(folder)
            for folder in tower_folders(root, architecture)
        ]
        size = _read_size(towers[0].directory)
        _add_head(findings, architecture, size, towers[0])
        findings.facts |= text_options(towers)
        findings.add_tokenizer(towers[0].directory, size)
        if len(towers) == 2:
            with findings.collecting():
                check_twins(towers)
        _add_weights(findings, towers, size)


def _read_size(folder: pathlib.Path) -> EncoderSize:
    _, arguments = read_layout_and_config(folder / KERAS_HUB_CONFIG)
    return EncoderSize.of_arguments(arguments)


def _add_head(
    findings: Findings,
    architecture: str,
    size: EncoderSize,
    tower: KerasHubTower,
) -> None:
    findings.add_encoder(size)
    width = tower.projection_dim
    findings.add_projection(
        width,
        bias=tower.projection_bias,
        activation=tower.projection_activation,
    )
    weights = (size.hidden_dim + tower.projection_bias) * width
    findings.add_parameters(architecture, size, weights)
    findings.facts |= {"pooling": "mean", "normalize": tower.normalize}


def _add_weights(
    findings: Findings, towers: list[KerasHubTower], size: EncoderSize
) -> None:
    """Add the files of all towers; see if each has what it has to have."""
    files: list[pathlib.Path] = []
    dtypes: list[str] = []
    for tower in towers:
        with findings.collecting():
            weights = _checked_encoder(tower.directory, size)
            files += weights.files
            dtypes += weights.dtypes.values()
        with findings.collecting():
            check_surplus(tower)
            if tower.projection_dim:
                weights = KerasHubWeights(tower.directory, stem="task")
                for name in check_projection(tower, weights, size.hidden_dim):
                    weights.check_float(name)
                    dtypes.append(weights.dtypes[name])
                files += weights.files
    if files:
        with findings.collecting():
            findings.add_weights(files, dtypes)


def _checked_encoder(
    directory: pathlib.Path, size: EncoderSize
) -> KerasHubWeights:
    layout, _ = read_layout_and_config(directory / KERAS_HUB_CONFIG)
    weights = KerasHubWeights(directory)
    # None: names of another version of Keras, which its loader knows.
    for name in layout.names(weights, size) or ():
        weights.check_float(name)
    return weights
