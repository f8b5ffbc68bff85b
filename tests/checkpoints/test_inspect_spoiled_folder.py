"""Tests that inspection finds what a loader would refuse."""

import json
import pathlib
import shutil

import h5py
import numpy as np
import pytest

from tf_samtone._files import write_manifest
from tf_samtone.checkpoints import (
    inspect_folder,
    save_hugging_face_t5,
    save_keras_hub_preset,
    save_sentence_transformers,
)
from tf_samtone.errors import SamToNeError
from tf_samtone.models import DualEncoder, projection_layer

# KerasHub leaves the vocabulary's file to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
SAVE = {
    "dual_encoder": lambda model, folder: model.save_to_preset(str(folder)),
    "sentence_transformers": save_sentence_transformers,
    "keras_hub": save_keras_hub_preset,
    "hugging_face": save_hugging_face_t5,
}


@pytest.fixture(scope="module")
def folders(make_tiny_dual_encoder, tmp_path_factory) -> pathlib.Path:
    """A folder of each kind, which no test changes."""
    root = tmp_path_factory.mktemp("folders")
    model = make_tiny_dual_encoder(
        projection=projection_layer(8, use_bias=True, activation="tanh")
    )
    for kind, save in SAVE.items():
        save(model, root / kind)
    return root


@pytest.fixture
def copied(folders, tmp_path):
    """Return a function that copies a folder for a test to spoil."""

    def copy(kind: str) -> pathlib.Path:
        return shutil.copytree(folders / kind, tmp_path / kind)

    return copy


def loads(folder: pathlib.Path) -> str | None:
    """Return the message of the loader, `None` if it loads the folder."""
    try:
        DualEncoder.from_preset(str(folder))
    except SamToNeError as error:
        return " ".join(str(error).split())
    return None


def spoil_flipped_byte(folder):
    path = folder / "model.weights.h5"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def spoil_lost_vocabulary(folder):
    for path in (*folder.rglob("*.spm"), *folder.rglob("spiece.model")):
        path.unlink()


def spoil_truncated_weights(folder):
    for path in folder.glob("model.*"):
        path.write_bytes(path.read_bytes()[:-100])


def spoil_shape(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    sizes = config["config"] if "registered_name" in config else config
    sizes["d_ff" if "d_ff" in sizes else "intermediate_dim"] += 1
    path.write_text(json.dumps(config))


def spoil_layers(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    sizes = config["config"] if "registered_name" in config else config
    sizes["num_layers"] += 1
    path.write_text(json.dumps(config))


def spoil_pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def spoil_model_type(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"model_type": "bert"}))


def spoil_json(folder):
    (folder / "config.json").write_text("{")


def spoil_pooling(folder):
    path = folder / "1_Pooling" / "config.json"
    path.write_text(json.dumps({"pooling_mode": "cls"}))


def spoil_prompts(folder):
    path = folder / "config_sentence_transformers.json"
    path.write_text(json.dumps({"prompts": ["query"]}))


def spoil_dense(folder):
    path = folder / "2_Dense" / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps(config | {"out_features": 9}))


def spoil_task(folder):
    path = folder / "task.json"
    task = json.loads(path.read_text())
    task["config"]["projection_bias"] = False
    path.write_text(json.dumps(task))


def spoil_integer_weights(folder):
    with h5py.File(folder / "model.weights.h5", "a") as file:
        name = "layers/t5_layer_norm/vars/0"
        shape = file[name].shape
        del file[name]
        file[name] = np.ones(shape, np.int32)


@pytest.mark.parametrize(
    ("kind", "spoil"),
    [
        ("dual_encoder", spoil_flipped_byte),
        ("dual_encoder", spoil_lost_vocabulary),
        ("dual_encoder", spoil_truncated_weights),
        ("hugging_face", spoil_lost_vocabulary),
        ("hugging_face", spoil_truncated_weights),
        ("hugging_face", spoil_shape),
        ("hugging_face", spoil_layers),
        ("hugging_face", spoil_pickled),
        ("hugging_face", spoil_model_type),
        ("hugging_face", spoil_json),
        ("sentence_transformers", spoil_lost_vocabulary),
        ("sentence_transformers", spoil_truncated_weights),
        ("sentence_transformers", spoil_shape),
        ("sentence_transformers", spoil_layers),
        ("sentence_transformers", spoil_pickled),
        ("sentence_transformers", spoil_model_type),
        ("sentence_transformers", spoil_pooling),
        ("sentence_transformers", spoil_prompts),
        ("sentence_transformers", spoil_dense),
        ("keras_hub", spoil_lost_vocabulary),
        ("keras_hub", spoil_truncated_weights),
        ("keras_hub", spoil_shape),
        ("keras_hub", spoil_layers),
        ("keras_hub", spoil_task),
        ("keras_hub", spoil_integer_weights),
    ],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_spoiled_folder_has_the_problem_that_its_loader_raises(
    copied, kind, spoil
):
    folder = copied(kind)
    spoil(folder)

    report = inspect_folder(folder)

    assert loads(folder) in report.problems
    assert not report.can_load


def test_weights_of_other_sizes_are_found_even_under_a_new_manifest(copied):
    folder = copied("dual_encoder")
    config = json.loads((folder / "config.json").read_text())
    config["encoder"]["num_layers"] += 1
    (folder / "config.json").write_text(json.dumps(config))
    write_manifest(folder, kind="dual_encoder", format_version=2, fields={})

    report = inspect_folder(folder)

    assert "Use the config that belongs to the weights" in report.problems[0]
    assert loads(folder) is not None
