"""KerasHub-style presets: written, loaded by KerasHub, read back."""

import json

import keras_hub
import numpy as np
import pytest

from tf_samtone.checkpoints import (
    is_our_keras_hub_preset,
    save_keras_hub_preset,
)
from tf_samtone.errors import (
    InvalidInputError,
    MismatchError,
    OutputExistsError,
)
from tf_samtone.models import ARCHITECTURES, DualEncoder, projection_layer

# KerasHub leaves the vocabulary's file to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
TEXTS = ["a cat", "", "the small dog reads a long book at night"]


def diverged(model):
    """Move every weight, so that both towers and all parts differ."""
    generator = np.random.default_rng(0)
    for weight in model.weights:
        noise = 0.1 * generator.normal(size=weight.shape)
        weight.assign(weight.numpy() + noise)
    return model


def both_sides(model):
    return np.stack(
        [model.encode_queries(TEXTS), model.encode_documents(TEXTS)]
    )


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_model_comes_back_bit_for_bit(
    make_tiny_dual_encoder, tmp_path, architecture
):
    model = diverged(make_tiny_dual_encoder(architecture))
    save_keras_hub_preset(model, tmp_path / "preset")
    copy = DualEncoder.from_preset(tmp_path / "preset")
    assert copy.architecture == architecture
    assert copy.fingerprint() == model.fingerprint()
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))


@pytest.mark.parametrize("architecture", ["sde", "ade"])
@pytest.mark.parametrize(
    "options",
    [
        {"projection_dim": 0},
        {"normalize": False},
        {"query_prefix": "find: ", "document_prefix": "text: "},
        {"query_length": 12},
    ],
    ids=["no_projection", "no_unit_length", "prefixes", "one_length"],
)
def test_unusual_options_come_back(
    make_tiny_dual_encoder, tmp_path, architecture, options
):
    model = diverged(make_tiny_dual_encoder(architecture, **options))
    save_keras_hub_preset(model, tmp_path / "preset")
    copy = DualEncoder.from_preset(tmp_path / "preset")
    assert copy.architecture == architecture
    assert copy.fingerprint() == model.fingerprint()
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))


def test_bias_and_activation_of_the_projection_come_back(
    make_tiny_dual_encoder, tmp_path
):
    projection = projection_layer(8, use_bias=True, activation="tanh")
    model = diverged(make_tiny_dual_encoder("ade", projection=projection))
    save_keras_hub_preset(model, tmp_path / "preset")
    copy = DualEncoder.from_preset(tmp_path / "preset")
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))


@pytest.mark.parametrize("architecture", ["ade-spl", "ade-ste"])
def test_what_the_towers_share_is_shared_again(
    make_tiny_dual_encoder, tmp_path, architecture
):
    model = make_tiny_dual_encoder(architecture)
    save_keras_hub_preset(model, tmp_path / "preset")
    copy = DualEncoder.from_preset(tmp_path / "preset")
    assert len(copy.weights) == len(model.weights)


def test_kerashub_loads_one_tower_as_a_text_embedder(
    make_tiny_dual_encoder, tmp_path
):
    model = diverged(make_tiny_dual_encoder())
    save_keras_hub_preset(model, tmp_path / "preset")
    embedder = keras_hub.models.TextEmbedder.from_preset(
        str(tmp_path / "preset")
    )
    np.testing.assert_allclose(
        embedder.encode_text(TEXTS), model.encode_queries(TEXTS), atol=1e-6
    )
    np.testing.assert_allclose(
        embedder.encode_documents(TEXTS),
        model.encode_documents(TEXTS),
        atol=1e-6,
    )


@pytest.mark.parametrize("side", ["query", "document"])
def test_kerashub_loads_each_of_two_towers(
    make_tiny_dual_encoder, tmp_path, side
):
    model = diverged(make_tiny_dual_encoder("ade"))
    save_keras_hub_preset(model, tmp_path / "preset")
    embedder = keras_hub.models.TextEmbedder.from_preset(
        str(tmp_path / "preset" / side)
    )
    encode = {"query": model.encode_queries, "document": model.encode_documents}
    np.testing.assert_allclose(
        embedder.encode_text(TEXTS), encode[side](TEXTS), atol=1e-6
    )


def test_kerashub_loads_the_encoder_and_the_tokenizer_alone(
    make_tiny_dual_encoder, tmp_path
):
    model = diverged(make_tiny_dual_encoder())
    folder = str(tmp_path / "preset")
    save_keras_hub_preset(model, folder)
    backbone = keras_hub.models.Backbone.from_preset(folder)
    for copy, weight in zip(
        backbone.weights, model.query_tower.encoder.weights, strict=True
    ):
        np.testing.assert_array_equal(copy.numpy(), weight.numpy())
    tokenizer = keras_hub.models.Tokenizer.from_preset(folder)
    assert tokenizer.proto == model.tokenizer.proto


def test_another_dtype_can_be_chosen_at_loading(
    make_tiny_dual_encoder, tmp_path
):
    save_keras_hub_preset(make_tiny_dual_encoder(), tmp_path / "preset")
    copy = DualEncoder.from_preset(tmp_path / "preset", dtype="mixed_bfloat16")
    assert copy.query_tower.encoder.compute_dtype == "bfloat16"


def test_a_contradicting_option_is_refused(make_tiny_dual_encoder, tmp_path):
    save_keras_hub_preset(make_tiny_dual_encoder("ade"), tmp_path / "preset")
    with pytest.raises(MismatchError, match="architecture='ade'"):
        DualEncoder.from_preset(tmp_path / "preset", architecture="ade-spl")


def test_the_preset_is_recognised_without_loading(
    make_tiny_dual_encoder, tmp_path
):
    save_keras_hub_preset(make_tiny_dual_encoder(), tmp_path / "preset")
    assert is_our_keras_hub_preset(tmp_path / "preset")
    assert not is_our_keras_hub_preset(tmp_path)


def test_weights_that_are_not_finite_leave_no_folder(
    make_tiny_dual_encoder, tmp_path
):
    model = make_tiny_dual_encoder()
    kernel = model.query_tower.projection.kernel
    kernel.assign(np.full(kernel.shape, np.nan))
    with pytest.raises(InvalidInputError, match="finite"):
        save_keras_hub_preset(model, tmp_path / "preset")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_files_is_kept(make_tiny_dual_encoder, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(OutputExistsError):
        save_keras_hub_preset(make_tiny_dual_encoder(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_another_task_is_refused(make_tiny_dual_encoder, tmp_path):
    folder = tmp_path / "preset"
    save_keras_hub_preset(make_tiny_dual_encoder(), folder)
    task = json.loads((folder / "task.json").read_text())
    task["config"]["projection_dim"] = 9
    (folder / "task.json").write_text(json.dumps(task))
    with pytest.raises(MismatchError, match="9"):
        DualEncoder.from_preset(folder)
