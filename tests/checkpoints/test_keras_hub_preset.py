"""Tests of presets of ours that were damaged, mixed up or changed.

Round trips stand in test_save_keras_hub_preset.
"""

import json
import pathlib
import shutil

import h5py
import numpy as np
import pytest

from tf_samtone.checkpoints import (
    load_keras_hub_dual_encoder,
    save_keras_hub_preset,
)
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
)
from tf_samtone.models import (
    DualEncoder,
    LoadOptions,
    T5TextEmbedder,
    T5TextEmbedderPreprocessor,
    projection_layer,
)
from tf_samtone.text import load_tokenizer

# KerasHub leaves the vocabulary's file to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
VOCABULARY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"
TEXTS = ["a cat", "", "the small dog reads a long book at night"]
KERNEL = "layers/dense/vars/0"
BIAS = "layers/dense/vars/1"
NORM = "layers/t5_layer_norm/vars/0"


class OtherDualEncoder(DualEncoder):
    """A subclass of a user."""


@pytest.fixture(scope="module")
def presets(make_tiny_dual_encoder, tmp_path_factory) -> pathlib.Path:
    """Return presets that no test changes, by architecture."""
    folder = tmp_path_factory.mktemp("presets")
    for architecture in ("sde", "ade", "ade-spl"):
        projection = projection_layer(8, use_bias=True, activation="tanh")
        model = make_tiny_dual_encoder(
            architecture,
            projection=projection,
            query_prefix="ask: ",
            document_prefix="read: ",
        )
        save_keras_hub_preset(model, folder / architecture)
    return folder


@pytest.fixture
def copied(presets, tmp_path):
    """Return a function that copies a preset that a test may spoil."""

    def copy(architecture: str) -> pathlib.Path:
        return shutil.copytree(presets / architecture, tmp_path / "copy")

    return copy


def change_task(folder: pathlib.Path, **changes) -> None:
    path = folder / "task.json"
    task = json.loads(path.read_text())
    task["config"] |= changes
    path.write_text(json.dumps(task))


def scale(path: pathlib.Path, name: str) -> None:
    """Change the values of a tensor in a weights file."""
    with h5py.File(path, "a") as file:
        file[name][...] = 2 * file[name][...] + 1


# === What is loaded ===


def test_every_option_can_be_chosen_at_loading(presets):
    options = LoadOptions(
        architecture="ade",
        projection_dim=8,
        query_length=5,
        document_length=7,
        query_prefix="q: ",
        document_prefix="d: ",
        normalize=True,
        dropout=0.25,
        dtype="mixed_bfloat16",
    )
    model = load_keras_hub_dual_encoder(presets / "ade", options)
    for side, length, prefix in (("query", 5, "q: "), ("document", 7, "d: ")):
        preprocessor = getattr(model, f"{side}_preprocessor")
        assert preprocessor.sequence_length == length
        assert preprocessor.prefix == prefix
        tower = getattr(model, f"{side}_tower")
        assert tower.normalize
        assert tower.encoder.dropout == 0.25
        assert tower.encoder.compute_dtype == "bfloat16"


@pytest.mark.parametrize("architecture", ["sde", "ade"])
def test_lengths_and_prefixes_are_those_of_the_files(presets, architecture):
    model = load_keras_hub_dual_encoder(presets / architecture)
    for side, length, prefix in (
        ("query", 6, "ask: "),
        ("document", 12, "read: "),
    ):
        preprocessor = getattr(model, f"{side}_preprocessor")
        assert preprocessor.sequence_length == length
        assert preprocessor.prefix == prefix


def test_a_subclass_is_kept(presets):
    model = load_keras_hub_dual_encoder(
        presets / "sde", model_class=OtherDualEncoder
    )
    assert type(model) is OtherDualEncoder


def test_the_folder_of_a_text_embedder_is_a_single_tower(
    make_tiny_encoder, tmp_path
):
    embedder = T5TextEmbedder(
        make_tiny_encoder(),
        T5TextEmbedderPreprocessor(
            load_tokenizer(VOCABULARY), sequence_length=9, prefix="x: "
        ),
        projection_dim=5,
    )
    embedder.save_to_preset(str(tmp_path / "preset"))
    model = load_keras_hub_dual_encoder(tmp_path / "preset")
    assert model.architecture == "sde"
    assert model.dim == 5
    # Documents do not differ from queries if the file does not say so.
    for encode in (model.encode_queries, model.encode_documents):
        np.testing.assert_allclose(
            encode(TEXTS), embedder.encode_text(TEXTS), atol=1e-6
        )


def test_two_folders_of_towers_are_two_towers(presets, copied):
    folder = copied("ade")
    scale(folder / "document" / "model.weights.h5", NORM)
    model = load_keras_hub_dual_encoder(folder)
    whole = load_keras_hub_dual_encoder(presets / "ade")
    np.testing.assert_array_equal(
        model.encode_queries(TEXTS), whole.encode_queries(TEXTS)
    )
    scaled = model.document_tower.encoder.encoder_layer_norm.weight
    weight = whole.document_tower.encoder.encoder_layer_norm.weight
    np.testing.assert_array_equal(scaled, 2 * weight.numpy() + 1)


# === What is refused ===


@pytest.mark.parametrize(
    "option", [{"architecture": "ade"}, {"projection_dim": 9}]
)
def test_an_option_that_the_weights_contradict_is_refused(presets, option):
    ((name, value),) = option.items()
    with pytest.raises(MismatchError, match=f"Received: {name}={value!r}"):
        load_keras_hub_dual_encoder(presets / "sde", LoadOptions(**option))


def test_an_unknown_architecture_is_refused(copied):
    folder = copied("sde")
    path = folder / "tf_samtone.json"
    info = json.loads(path.read_text())
    path.write_text(json.dumps({**info, "architecture": "siamese"}))
    with pytest.raises(InvalidInputError, match="siamese"):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize(
    "name", ["task.json", "config.json", "model.weights.h5", "task.weights.h5"]
)
@pytest.mark.parametrize(
    ("architecture", "side"), [("sde", "."), ("ade", "document")]
)
def test_a_missing_file_is_named(copied, architecture, side, name):
    folder = copied(architecture)
    (folder / side / name).unlink()
    with pytest.raises(CorruptFileError, match=name):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize(
    ("architecture", "side"), [("sde", "."), ("ade", "document")]
)
def test_a_missing_vocabulary_is_refused(copied, architecture, side):
    folder = copied(architecture)
    shutil.rmtree(folder / side / "assets")
    with pytest.raises(InvalidInputError, match=r"vocabulary\.spm"):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"projection_dim": 9},
        {"projection_bias": False},
        {"projection_activation": None},
        {"normalize": False},
    ],
    ids=str,
)
def test_towers_with_different_heads_are_refused(copied, change):
    folder = copied("ade")
    change_task(folder / "document", **change)
    (name,) = change
    with pytest.raises(MismatchError, match=f"the same {name} in"):
        load_keras_hub_dual_encoder(folder)


def test_towers_with_different_encoders_are_refused(copied):
    folder = copied("ade")
    path = folder / "document" / "config.json"
    config = json.loads(path.read_text())
    config["config"]["layer_norm_epsilon"] = 1e-5
    path.write_text(json.dumps(config))
    with pytest.raises(MismatchError, match="the same layer_norm_epsilon"):
        load_keras_hub_dual_encoder(folder)


def test_towers_with_different_vocabularies_are_refused(copied):
    folder = copied("ade")
    path = folder / "document" / "assets" / "tokenizer" / "vocabulary.spm"
    # An unknown field at the end leaves a valid SentencePiece model.
    path.write_bytes(path.read_bytes() + b"\xf8\x7f\x01")
    with pytest.raises(MismatchError, match="the same vocabulary"):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize("name", [KERNEL, BIAS])
def test_a_shared_projection_with_two_values_is_refused(copied, name):
    folder = copied("ade-spl")
    scale(folder / "document" / "task.weights.h5", name)
    with pytest.raises(MismatchError, match="values of the other tower"):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize("name", [KERNEL, BIAS])
@pytest.mark.parametrize(
    ("architecture", "side"), [("sde", "."), ("ade", "document")]
)
def test_a_projection_without_its_weights_is_refused(
    copied, architecture, side, name
):
    folder = copied(architecture)
    with h5py.File(folder / side / "task.weights.h5", "a") as file:
        del file[name]
    with pytest.raises(MismatchError, match=f"{name} of shape.*shape=None"):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"projection_dim": 0}, KERNEL), ({"projection_bias": False}, BIAS)],
    ids=["projection", "bias"],
)
@pytest.mark.parametrize("architecture", ["sde", "ade"])
def test_weights_that_the_task_does_not_know_are_refused(
    copied, architecture, change, name
):
    folder = copied(architecture)
    for side in (".",) if architecture == "sde" else ("query", "document"):
        change_task(folder / side, **change)
    with pytest.raises(MismatchError, match=rf"surplus=\[.*'{name}'"):
        load_keras_hub_dual_encoder(folder)


@pytest.mark.parametrize("side", ["query", "document"])
@pytest.mark.parametrize(
    ("file", "name"),
    [("model.weights.h5", NORM), ("task.weights.h5", KERNEL)],
)
def test_weights_that_are_not_finite_are_refused(copied, side, file, name):
    folder = copied("ade")
    with h5py.File(folder / side / file, "a") as weights:
        weights[name][0] = np.nan
    with pytest.raises(CorruptFileError, match=f"{file}.*infinity in {name}"):
        load_keras_hub_dual_encoder(folder)
