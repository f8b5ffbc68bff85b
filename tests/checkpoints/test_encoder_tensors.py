"""The table of weights against encoders that were made.

Names of other libraries: test_golden_shapes, and the parity tests.
"""

import pytest

from tf_samtone.checkpoints._encoder_tensors import (
    encoder_tensors,
    encoder_variables,
)
from tf_samtone.models import EncoderSize

FAMILIES = pytest.mark.parametrize("gated", [False, True], ids=["1.0", "1.1"])


@FAMILIES
def test_every_weight_of_an_encoder_is_listed_once(make_tiny_encoder, gated):
    encoder = make_tiny_encoder(use_gated_activation=gated)
    listed = encoder_variables(encoder)
    assert sorted(v.path for v in listed) == sorted(
        v.path for v in encoder.weights
    )


@FAMILIES
def test_shapes_are_those_of_the_variables(make_tiny_encoder, gated):
    encoder = make_tiny_encoder(use_gated_activation=gated)
    tensors = encoder_tensors(EncoderSize.of_encoder(encoder))
    assert [t.shape for t in tensors] == [
        tuple(v.shape) for v in encoder_variables(encoder)
    ]


@FAMILIES
def test_names_are_distinct_in_every_format(make_tiny_encoder, gated):
    encoder = make_tiny_encoder(use_gated_activation=gated)
    tensors = encoder_tensors(EncoderSize.of_encoder(encoder))
    for names in zip(*((t.hugging_face, t.t5x) for t in tensors), strict=True):
        assert len(set(names)) == len(tensors)


def test_torch_holds_kernels_transposed_and_tables_not(make_tiny_encoder):
    size = EncoderSize.of_encoder(make_tiny_encoder())
    shapes = {t.hugging_face: t.torch_shape for t in encoder_tensors(size)}
    assert shapes["shared.weight"] == (384, 16)
    assert shapes["encoder.block.1.layer.1.DenseReluDense.wo.weight"] == (
        16,
        24,
    )
