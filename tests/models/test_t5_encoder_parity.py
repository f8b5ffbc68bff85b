"""Outputs of the T5 encoder against other implementations of T5."""

import os
import pathlib

import keras
import keras_hub
import numpy as np
import pytest

from tf_samtone.checkpoints import load_hugging_face_t5, load_keras_hub_t5
from tf_samtone.models.t5_encoder import T5Encoder

ROOT = pathlib.Path(__file__).parents[2]
DATA = ROOT / "tests" / "data_files"
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
TINY_FOLDERS = ("t5_tiny_relu", "t5_tiny_gated_gelu")


def assert_close(actual: np.ndarray, expected: np.ndarray, scale=None) -> None:
    """Compare to 1e-5 of the largest expected output."""
    scale = np.abs(expected).max() if scale is None else scale
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


def encode(
    encoder: keras.Model, token_ids: np.ndarray, padding_mask: np.ndarray
) -> np.ndarray:
    inputs = {"token_ids": token_ids, "padding_mask": padding_mask}
    return np.asarray(encoder(inputs, training=False))


@pytest.fixture(params=TINY_FOLDERS)
def tiny(request) -> tuple[T5Encoder, dict[str, np.ndarray]]:
    """One encoder of random weights and transformers' outputs for it."""
    golden = np.load(DATA / f"{request.param}_golden.npz", allow_pickle=False)
    return load_hugging_face_t5(DATA / request.param), dict(golden)


def test_tiny_weights_agree_with_transformers(tiny):
    encoder, golden = tiny
    mask = golden["padding_mask"]
    outputs = encode(encoder, golden["token_ids"], mask)
    assert_close(outputs[mask > 0], golden["real_outputs"])


@pytest.mark.parametrize("extra_padding", [0, 7], ids=["bare", "padded"])
def test_a_row_alone_agrees_with_transformers(tiny, extra_padding):
    encoder, golden = tiny
    row, start = 2, golden["padding_mask"][:2].sum()
    length = golden["padding_mask"][row].sum()
    outputs = encode(
        encoder,
        golden["token_ids"][row : row + 1, : length + extra_padding],
        golden["padding_mask"][row : row + 1, : length + extra_padding],
    )
    expected = golden["real_outputs"][start : start + length]
    assert_close(outputs[0, :length], expected)


def test_the_id_at_a_padded_position_does_not_matter(tiny):
    encoder, golden = tiny
    mask = golden["padding_mask"]
    token_ids = np.where(mask > 0, golden["token_ids"], 5)
    outputs = encode(encoder, token_ids, mask)
    assert_close(outputs[mask > 0], golden["real_outputs"])


def test_tanh_and_exact_gelu_differ_by_more_than_the_tolerance():
    # Otherwise the tests above could not tell the two forms apart.
    x = np.linspace(-3, 3, 61, dtype=np.float32)
    tanh_form = np.asarray(keras.activations.gelu(x, approximate=True))
    exact_form = np.asarray(keras.activations.gelu(x, approximate=False))
    assert np.abs(tanh_form - exact_form).max() > 1e-4


@pytest.fixture(scope="module")
def real() -> tuple[T5Encoder, dict[str, np.ndarray]]:
    """Return the encoder of real weights and transformers' outputs for it."""
    folder = SHARED / "data" / "t5_small_encoder"
    if not folder.is_dir():
        pytest.skip(
            "needs the real T5 weights in ../shared/data/t5_small_encoder "
            "(or set TF_SAMTONE_SHARED)"
        )
    golden = np.load(DATA / "t5_small_encoder_golden.npz", allow_pickle=False)
    return load_hugging_face_t5(folder), dict(golden)


def test_real_weights_agree_with_transformers(real):
    encoder, golden = real
    outputs = encode(encoder, golden["token_ids"], golden["padding_mask"])
    actual = np.take_along_axis(
        outputs, golden["positions"][..., np.newaxis], axis=1
    )
    assert_close(actual, golden["outputs"], golden["scale"])


def test_mean_of_real_outputs_agrees_with_transformers(real):
    encoder, golden = real
    mask = golden["padding_mask"][..., np.newaxis].astype(np.float64)
    outputs = encode(encoder, golden["token_ids"], golden["padding_mask"])
    means = (outputs * mask).sum(1) / mask.sum(1)
    assert_close(means, golden["means"])


# KerasHub's own layers warn that they do not support the mask they are given.
@pytest.mark.filterwarnings("ignore:Layer '.*' .of type T5:UserWarning")
# keras.Variable does not know NumPy 2's copy keyword (Keras 3.15).
@pytest.mark.filterwarnings("ignore:__array__ impl:DeprecationWarning")
@pytest.mark.parametrize("gated", [False, True], ids=["plain", "gated"])
def test_agrees_with_the_encoder_of_keras_hub(tmp_path, gated):
    keras.utils.set_random_seed(0)
    backbone = keras_hub.models.T5Backbone(
        vocabulary_size=50,
        num_layers=2,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
        key_value_dim=6,
        activation="relu",
        use_gated_activation=gated,
    )
    # The initial position bias is near zero and the norms are all ones.
    generator = np.random.default_rng(0)
    for weight in backbone.weights:
        noise = generator.normal(size=weight.shape)
        weight.assign(weight.numpy() + 0.3 * noise)
    backbone.save_to_preset(tmp_path / "preset")
    encoder = load_keras_hub_t5(tmp_path / "preset")

    token_ids = generator.integers(2, 50, size=(3, 20)).astype(np.int32)
    mask = (np.arange(20) < [[3], [20], [11]]).astype(np.int32)
    expected = backbone(
        {
            "encoder_token_ids": token_ids,
            "encoder_padding_mask": mask,
            "decoder_token_ids": token_ids[:, :2],
            "decoder_padding_mask": mask[:, :2],
        },
        training=False,
    )["encoder_sequence_output"]
    actual = encode(encoder, token_ids, mask)
    assert_close(actual[mask > 0], np.asarray(expected)[mask > 0])
