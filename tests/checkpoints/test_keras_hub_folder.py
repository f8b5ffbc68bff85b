"""Tests of reading the JSON files of presets of ours."""

import json
import pathlib

import pytest
from t5_folders import write_json

from tf_samtone.checkpoints.keras_hub_folder import (
    KerasHubTower,
    is_our_keras_hub_preset,
    read_architecture,
    write_info,
)
from tf_samtone.errors import CorruptFileError, MismatchError

EMBEDDER = "tf_samtone>T5TextEmbedder"
CONFIG = {
    "projection_dim": 8,
    "projection_bias": True,
    "projection_activation": "tanh",
    "normalize": False,
    "document_length": 12,
    "document_prefix": "read: ",
}
TEXTS = {"sequence_length": 6, "prefix": "ask: "}
INFO = "tf_samtone.json"
TASK = "task.json"


def write_task(folder: pathlib.Path, texts: object = None, **changes) -> None:
    """Write a `task.json` with changes of its config."""
    preprocessor = {"config": {**TEXTS, **(texts or {})}}
    config = {**CONFIG, "preprocessor": preprocessor, **changes}
    task = {"registered_name": EMBEDDER, "config": config}
    write_json(folder / TASK, task)


def test_every_field_is_read(tmp_path):
    write_task(tmp_path)
    assert KerasHubTower.read(tmp_path) == KerasHubTower(
        directory=tmp_path,
        sequence_length=6,
        prefix="ask: ",
        document_length=12,
        document_prefix="read: ",
        projection_dim=8,
        projection_bias=True,
        projection_activation="tanh",
        normalize=False,
    )


def test_the_head_is_what_follows_the_encoder(tmp_path):
    write_task(tmp_path)
    assert KerasHubTower.read(tmp_path).head == {
        "projection_dim": 8,
        "projection_bias": True,
        "projection_activation": "tanh",
        "normalize": False,
    }


def test_a_tower_without_a_preprocessor_says_nothing_of_texts(tmp_path):
    write_task(tmp_path, preprocessor=None)
    tower = KerasHubTower.read(tmp_path)
    assert (tower.sequence_length, tower.prefix) == (None, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("projection_dim", "8"),
        ("projection_dim", None),
        ("projection_dim", True),
        ("projection_dim", 8.0),
        ("projection_bias", 1),
        ("projection_bias", None),
        ("projection_activation", 3),
        ("normalize", 0),
        ("normalize", "false"),
        ("document_length", 1.5),
        ("document_length", True),
        ("document_prefix", 3),
        ("preprocessor", []),
    ],
    ids=str,
)
def test_a_value_of_another_type_is_named(tmp_path, name, value):
    write_task(tmp_path, **{name: value})
    message = f"Expected `{name}` of type .* in .*{TASK}.*{name}={value!r}"
    with pytest.raises(CorruptFileError) as error:
        KerasHubTower.read(tmp_path)
    assert error.match(message.replace("[]", r"\[\]"))


@pytest.mark.parametrize(
    ("name", "value"),
    [("sequence_length", "6"), ("sequence_length", False), ("prefix", 3)],
    ids=str,
)
def test_a_value_of_the_preprocessor_is_named_too(tmp_path, name, value):
    write_task(tmp_path, texts={name: value})
    with pytest.raises(CorruptFileError, match=f"{name}={value!r}"):
        KerasHubTower.read(tmp_path)


def test_a_missing_task_is_named(tmp_path):
    with pytest.raises(CorruptFileError, match=TASK):
        KerasHubTower.read(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{"], ids=repr)
def test_a_task_that_is_no_json_object_is_refused(tmp_path, text):
    (tmp_path / TASK).write_text(text)
    with pytest.raises(CorruptFileError, match=TASK):
        KerasHubTower.read(tmp_path)


def test_a_task_without_a_config_is_refused(tmp_path):
    write_json(tmp_path / TASK, {"registered_name": EMBEDDER})
    with pytest.raises(CorruptFileError, match="config=None"):
        KerasHubTower.read(tmp_path)


@pytest.mark.parametrize(
    "name", ["keras_hub>BertTextClassifier", "T5TextEmbedder", None]
)
def test_another_task_is_refused_by_name(tmp_path, name):
    write_json(tmp_path / TASK, {"registered_name": name, "config": {}})
    with pytest.raises(MismatchError, match=f"registered_name={name!r}"):
        KerasHubTower.read(tmp_path)


# === Which folders are ours ===


@pytest.mark.parametrize(
    ("file", "content", "is_ours"),
    [
        (INFO, {}, True),
        (TASK, {"registered_name": EMBEDDER}, True),
        (TASK, {"registered_name": "keras_hub>BertTextClassifier"}, False),
        (TASK, {}, False),
        ("config.json", {"registered_name": EMBEDDER}, False),
    ],
)
def test_a_preset_is_known_by_its_files(tmp_path, file, content, is_ours):
    write_json(tmp_path / file, content)
    assert is_our_keras_hub_preset(tmp_path) is is_ours


def test_other_paths_are_not_ours(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path, tmp_path / "absent", tmp_path / "file", "t5_base"):
        assert not is_our_keras_hub_preset(path)


def test_a_broken_task_is_not_taken_for_another_folder(tmp_path):
    (tmp_path / TASK).write_text("{")
    with pytest.raises(CorruptFileError, match=TASK):
        is_our_keras_hub_preset(tmp_path)


# === The architecture ===


def test_what_is_written_is_read(tmp_path):
    write_info(tmp_path, architecture="ade-spl", query_length=6)
    assert read_architecture(tmp_path) == "ade-spl"
    info = json.loads((tmp_path / INFO).read_text())
    assert info == {
        "format_version": 1,
        "architecture": "ade-spl",
        "query_length": 6,
    }


def test_a_folder_without_the_file_is_a_single_tower(tmp_path):
    assert read_architecture(tmp_path) == "sde"


@pytest.mark.parametrize("version", [2, 0, "1", None], ids=repr)
def test_another_version_is_refused(tmp_path, version):
    write_json(
        tmp_path / INFO, {"format_version": version, "architecture": "sde"}
    )
    message = f"format_version=1 in .*{INFO}.*format_version={version!r}"
    with pytest.raises(MismatchError, match=message):
        read_architecture(tmp_path)


@pytest.mark.parametrize("value", [None, 3, ["sde"]], ids=repr)
def test_an_architecture_that_is_no_name_is_refused(tmp_path, value):
    write_info(tmp_path, architecture=value)
    with pytest.raises(CorruptFileError, match="`architecture` of type str"):
        read_architecture(tmp_path)
