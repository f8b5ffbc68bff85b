"""Names and shapes of all weights of every size, against transformers.

The files are made by tests/data_files/make_golden_shapes.py.
"""

import json
import math
from pathlib import Path

import pytest

from tf_samtone.checkpoints._encoder_tensors import (
    encoder_tensors,
    encoder_variables,
)
from tf_samtone.models.abstract_model import abstract_towers
from tf_samtone.models.model_sizes import MODEL_SIZES

FOLDER = Path(__file__).resolve().parent.parent / "data_files" / "golden_shapes"


def golden(name):
    shapes = json.loads((FOLDER / f"{name}.json").read_text())
    return {key: tuple(shape) for key, shape in shapes.items()}


def test_every_size_has_a_file():
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(MODEL_SIZES)


@pytest.mark.parametrize("name", MODEL_SIZES)
def test_the_table_of_weights_is_that_of_transformers(name):
    size = MODEL_SIZES[name]
    table = {
        t.hugging_face: t.torch_shape for t in encoder_tensors(size.encoder)
    }
    projection = (size.projection_dim, size.encoder.hidden_dim)
    assert {**table, "linear.weight": projection} == golden(name)


@pytest.mark.parametrize("name", MODEL_SIZES)
def test_the_variables_of_a_model_have_these_shapes(name):
    size = MODEL_SIZES[name]
    tower, _ = abstract_towers(size)
    expected = golden(name)
    for tensor, variable in zip(
        encoder_tensors(size.encoder),
        encoder_variables(tower.encoder),
        strict=True,
    ):
        shape = expected[tensor.hugging_face]
        ours = shape[::-1] if tensor.is_kernel else shape
        assert tuple(variable.shape) == ours, variable.path
    assert (
        tuple(tower.projection.kernel.shape)[::-1] == expected["linear.weight"]
    )


@pytest.mark.parametrize("name", MODEL_SIZES)
def test_the_number_of_weights_is_the_sum_over_the_file(name):
    total = sum(math.prod(shape) for shape in golden(name).values())
    assert MODEL_SIZES[name].parameters == total
