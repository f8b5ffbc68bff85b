"""Tests of finding the tensors of an encoder in Keras's weight files."""

import json
import pathlib
import shutil

import h5py
import keras_hub
import numpy as np
import pytest

from tf_samtone.checkpoints import load_keras_hub_t5
from tf_samtone.checkpoints._keras_hub_layout import (
    BACKBONE_LAYOUT,
    ENCODER_LAYOUT,
)
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.errors import MismatchError
from tf_samtone.models import EncoderSize

# KerasHub's own layers warn that they do not support the mask they get.
pytestmark = pytest.mark.filterwarnings("ignore:Layer '.*' .of type T5")
SIZES = {
    "vocabulary_size": 384,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "key_value_dim": 6,
}
KERNEL = "layers/t5_encoder_layer_1/output_projector/vars/0"
NORM = "layers/t5_layer_norm/vars/0"


@pytest.fixture(scope="module")
def presets(make_tiny_encoder, tmp_path_factory) -> pathlib.Path:
    """Return presets that no test changes, `encoder` and `backbone`."""
    folder = tmp_path_factory.mktemp("presets")
    make_tiny_encoder().save_to_preset(str(folder / "encoder"))
    backbone = keras_hub.models.T5Backbone(**SIZES, activation="gelu")
    backbone.save_to_preset(str(folder / "backbone"))
    return folder


@pytest.fixture
def encoder(presets, tmp_path) -> pathlib.Path:
    """Return a copy of the encoder's preset that a test may spoil."""
    return shutil.copytree(presets / "encoder", tmp_path / "copy")


def changed(preset: pathlib.Path) -> h5py.File:
    return h5py.File(preset / "model.weights.h5", "a")


def change_config(preset: pathlib.Path, **changes) -> None:
    path = preset / "config.json"
    config = json.loads(path.read_text())
    config["config"] |= changes
    path.write_text(json.dumps(config))


@pytest.mark.parametrize(
    ("kind", "layout"),
    [("encoder", ENCODER_LAYOUT), ("backbone", BACKBONE_LAYOUT)],
)
def test_every_tensor_of_an_encoder_is_found(presets, kind, layout):
    weights = KerasHubWeights(presets / kind)
    size = EncoderSize(**SIZES, activation="gelu", use_gated_activation=True)
    names = layout.names(weights, size)
    # Table, positions, last norm; per layer two norms and seven kernels.
    assert len(set(names)) == 3 + 2 * 9
    assert all(name in weights.shapes for name in names)


def test_layers_are_taken_in_their_order(presets):
    encoder = load_keras_hub_t5(presets / "encoder")
    with h5py.File(presets / "encoder" / "model.weights.h5") as file:
        expected = np.asarray(file[KERNEL])
    layer = encoder.encoder_transformer_layers[1]
    np.testing.assert_array_equal(layer.output_projector.kernel, expected)


@pytest.mark.parametrize("name", [KERNEL, NORM])
def test_a_missing_tensor_is_named(encoder, name):
    with changed(encoder) as file:
        del file[name]
    message = rf"missing=\['{name}'\], surplus=\[\]"
    with pytest.raises(MismatchError, match=message):
        load_keras_hub_t5(encoder)


def test_a_surplus_tensor_is_named(encoder):
    with changed(encoder) as file:
        file["layers/dense/vars/0"] = np.ones((2, 3), np.float32)
    message = r"missing=\[\], surplus=\['layers/dense/vars/0'\]"
    with pytest.raises(MismatchError, match=message):
        load_keras_hub_t5(encoder)


@pytest.mark.parametrize("shape", [(16, 24), (24, 17), (24,), (24, 16, 1), ()])
def test_a_tensor_of_another_shape_is_named(encoder, shape):
    with changed(encoder) as file:
        del file[KERNEL]
        file[KERNEL] = np.ones(shape, np.float32)
    with pytest.raises(MismatchError) as error:
        load_keras_hub_t5(encoder)
    for part in (KERNEL, "shape (24, 16)", f"shape={shape}"):
        assert part in str(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_layers": 3}, r"missing=\['layers/t5_encoder_layer_2/"),
        ({"num_layers": 1}, r"surplus=\['layers/t5_encoder_layer_1/"),
        ({"hidden_dim": 20}, r"shape \(384, 20\).*shape=\(384, 16\)"),
        (
            {"use_gated_activation": False},
            r"surplus=\['layers/t5_encoder_layer/gate_projector/vars/0'",
        ),
    ],
    ids=["more", "fewer", "wider", "plain"],
)
def test_the_config_of_another_model_is_refused(encoder, change, message):
    change_config(encoder, **change)
    with pytest.raises(MismatchError, match=message):
        load_keras_hub_t5(encoder)


def test_the_decoder_of_a_backbone_is_no_surplus(presets):
    weights = KerasHubWeights(presets / "backbone")
    decoder = "layers/t5_transformer_layer_2/self_attention"
    assert any(name.startswith(decoder) for name in weights.shapes)
    assert load_keras_hub_t5(presets / "backbone").num_layers == 2


def test_surplus_layers_of_a_backbone_are_named(presets, tmp_path):
    # One encoder and one decoder layer, so that two others are left.
    preset = shutil.copytree(presets / "backbone", tmp_path / "copy")
    change_config(preset, num_layers=1)
    message = r"surplus=\['layers/t5_transformer_layer_2/"
    with pytest.raises(MismatchError, match=message):
        load_keras_hub_t5(preset)
