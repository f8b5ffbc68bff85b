"""Tests of reading KerasHub T5 presets; outputs: test_t5_encoder_parity."""

import keras_hub
import numpy as np
import pytest

from tf_samtone.checkpoints import load_keras_hub_t5
from tf_samtone.errors import InvalidInputError, MismatchError

pytestmark = [
    # KerasHub's own layers warn that they do not support the mask they get.
    pytest.mark.filterwarnings("ignore:Layer '.*' .of type T5:UserWarning"),
    # keras.Variable does not know NumPy 2's copy keyword (Keras 3.15).
    pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning"),
]
SIZES = {
    "vocabulary_size": 11,
    "num_layers": 1,
    "num_heads": 2,
    "hidden_dim": 8,
    "intermediate_dim": 12,
}


def saved(tmp_path, **options) -> tuple[keras_hub.models.T5Backbone, str]:
    backbone = keras_hub.models.T5Backbone(**SIZES, **options)
    backbone.save_to_preset(tmp_path / "preset")
    return backbone, str(tmp_path / "preset")


def test_config_is_carried_over(tmp_path):
    _, preset = saved(
        tmp_path,
        key_value_dim=3,
        dropout=0.25,
        activation="gelu",
        use_gated_activation=True,
        layer_norm_epsilon=1e-5,
    )
    config = load_keras_hub_t5(preset).get_config()
    expected = {
        **SIZES,
        "key_value_dim": 3,
        "dropout": 0.25,
        "activation": "gelu",
        "use_gated_activation": True,
        "layer_norm_epsilon": 1e-5,
    }
    assert expected.items() <= config.items()


def test_default_head_width_is_the_even_share(tmp_path):
    _, preset = saved(tmp_path, activation="relu")
    assert load_keras_hub_t5(preset).key_value_dim == 4


def test_weights_are_copied(tmp_path):
    backbone, preset = saved(tmp_path, activation="relu")
    encoder = load_keras_hub_t5(preset)
    np.testing.assert_array_equal(
        encoder.encoder_transformer_layers[0].gate_projector.kernel.numpy(),
        backbone.encoder_transformer_layers[0].gate_projector.kernel.numpy(),
    )


def test_dtype_reaches_the_encoder(tmp_path):
    _, preset = saved(tmp_path, activation="relu")
    encoder = load_keras_hub_t5(preset, dtype="mixed_bfloat16")
    assert encoder.compute_dtype == "bfloat16"


def test_other_activations_are_refused(tmp_path):
    _, preset = saved(tmp_path, activation="silu")
    with pytest.raises(MismatchError, match="activation='silu'"):
        load_keras_hub_t5(preset)


def test_a_preset_of_another_model_is_refused(tmp_path):
    backbone = keras_hub.models.BertBackbone(
        vocabulary_size=11,
        num_layers=1,
        num_heads=1,
        hidden_dim=4,
        intermediate_dim=4,
    )
    backbone.save_to_preset(tmp_path / "bert")
    with pytest.raises(MismatchError, match="`BertBackbone`"):
        load_keras_hub_t5(tmp_path / "bert")


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"t5_1\.1_small.*='t5_tiny'"):
        load_keras_hub_t5("t5_tiny")
