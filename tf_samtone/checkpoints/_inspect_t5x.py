"""Inspection of checkpoints of t5x and t5x_retrieval."""

import pathlib

from tf_samtone.checkpoints._findings import Findings
from tf_samtone.checkpoints._t5x_arrays import TREE_FILE, T5xArrays
from tf_samtone.checkpoints._t5x_layout import (
    check_arrays,
    common_size,
    projection_width,
    read_t5x_towers,
)

__all__ = ["inspect_t5x"]


def inspect_t5x(findings: Findings) -> None:
    """Find out what `load_t5x` would read."""
    root = findings.root
    size = None
    with findings.collecting():
        arrays = T5xArrays(root)
        if arrays.step is not None:
            findings.facts["step"] = arrays.step
        towers = read_t5x_towers(arrays)
        architecture = "sde"
        if len(towers) == 2:
            is_shared = towers[0].embedding == towers[1].embedding
            architecture = "ade-ste" if is_shared else "ade"
            findings.facts["architecture"] = architecture
        size = common_size(arrays, towers, None)
        findings.add_encoder(size)
        width = projection_width(arrays, towers)
        findings.add_projection(width)
        findings.add_parameters(architecture, size, size.hidden_dim * width)
        check_arrays(arrays, towers, size, width)
        findings.add_weights(_files(root), arrays.dtypes.values())
    findings.add_tokenizer(root, size)


def _files(root: pathlib.Path) -> list[pathlib.Path]:
    """Return the files of the model, without the optimizer's state."""
    arrays = [path for path in root.glob("target.*/**/*") if path.is_file()]
    return [root / TREE_FILE, *arrays]
