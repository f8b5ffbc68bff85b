"""`samtone-export`."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.checkpoints import load_hugging_face_t5
from tf_samtone.export.export_main import main

WITH_CARD = ("sentence_transformers", "hugging_face")


@pytest.fixture
def run(shared_model, tmp_path):
    """A run of samtone-train, with its model."""
    folder = tmp_path / "run"
    shared_model.save_to_preset(str(folder / "model"))
    recipe = {"name": "my-recipe", "loss": {"name": "samtone"}}
    results = {"figures": {"samtone": {"test": {"MRR@10": 0.4321}}}}
    (folder / "recipe.json").write_text(json.dumps(recipe))
    (folder / "results.json").write_text(json.dumps(results))
    return folder


def test_it_writes_a_saved_model_of_the_preset(
    preset, shared_model, tmp_path, capsys
):
    output = tmp_path / "1"

    code = main(["export", f"--model={preset}", f"--output={output}"])

    assert code == 0
    assert "24 dimensions" in capsys.readouterr().out
    np.testing.assert_allclose(
        tf.saved_model.load(str(output))(["a whale"]),
        shared_model.encode_queries(["a whale"]),
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("format", "files"),
    [
        ("saved_model", ["saved_model.pb"]),
        ("sentence_transformers", ["modules.json", "README.md"]),
        ("hugging_face", ["model.safetensors", "README.md"]),
        ("keras_hub", ["config.json", "task.json"]),
    ],
)
def test_every_format_can_be_written(preset, tmp_path, format, files):
    output = tmp_path / "1"
    arguments = [f"--model={preset}", f"--output={output}"]

    assert main(["export", *arguments, f"--format={format}"]) == 0

    for name in files:
        assert (output / name).is_file()


def test_the_weights_are_those_of_the_model(preset, shared_model, tmp_path):
    output = tmp_path / "1"
    arguments = [f"--model={preset}", f"--output={output}"]

    assert main(["export", *arguments, "--format=hugging_face"]) == 0

    for ours, theirs in zip(
        shared_model.query_tower.encoder.weights,
        load_hugging_face_t5(output).weights,
        strict=True,
    ):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.mark.parametrize("format", WITH_CARD)
def test_the_card_tells_of_the_run_above_the_model(run, tmp_path, format):
    output = tmp_path / "out"
    arguments = [f"--model={run}/model", f"--output={output}"]

    code = main(["export", *arguments, f"--format={format}", "--licence=mit"])

    card = (output / "README.md").read_text(encoding="utf-8")
    assert code == 0
    assert "# my-recipe" in card
    assert "| samtone | 0.4321 |" in card
    assert "license: mit" in card


def test_the_card_tells_of_the_run_that_is_named(run, preset, tmp_path):
    output = tmp_path / "out"
    arguments = [f"--model={preset}", f"--output={output}", f"--run={run}"]

    code = main(
        ["export", *arguments, "--format=hugging_face", "--title=My title"]
    )

    card = (output / "README.md").read_text(encoding="utf-8")
    assert code == 0
    assert "# My title" in card
    assert "| samtone | 0.4321 |" in card


def test_a_model_without_a_run_has_a_card_without_figures(preset, tmp_path):
    output = tmp_path / "out"
    arguments = [f"--model={preset}", f"--output={output}"]

    assert main(["export", *arguments, "--format=hugging_face"]) == 0

    card = (output / "README.md").read_text(encoding="utf-8")
    assert "has not been evaluated" in card


def test_a_folder_that_is_no_run_is_one_line(preset, tmp_path, capsys):
    arguments = [f"--model={preset}", f"--output={tmp_path}/out"]

    code = main(
        ["export", *arguments, "--format=hugging_face", f"--run={tmp_path}"]
    )

    error = capsys.readouterr().err
    assert code == 1
    assert error.count("\n") == 1
    assert "without recipe.json" in error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", ["saved_model", "keras_hub"])
@pytest.mark.parametrize("flag", ["--licence=mit", "--title=x", "--run=y"])
def test_a_format_without_card_refuses_the_flags_of_one(
    preset, tmp_path, capsys, format, flag
):
    arguments = [f"--model={preset}", f"--output={tmp_path}/out"]

    code = main(["export", *arguments, f"--format={format}", flag])

    assert code == 1
    assert flag in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_format_is_a_wrong_flag(preset, tmp_path, capsys):
    arguments = [f"--model={preset}", f"--output={tmp_path}/out"]

    assert main(["export", *arguments, "--format=onnx"]) == 2
    assert "sentence_transformers" in capsys.readouterr().err


def test_a_model_that_is_not_there_is_one_line(tmp_path, capsys):
    arguments = [f"--model={tmp_path}/none", f"--output={tmp_path}/1"]

    assert main(["export", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "save_to_preset" in error


@pytest.mark.parametrize("format", ["saved_model", *WITH_CARD])
def test_an_output_in_use_is_refused_unless_told_to_overwrite(
    preset, tmp_path, capsys, format
):
    (tmp_path / "old").write_text("old")
    arguments = ["export", f"--model={preset}", f"--output={tmp_path}"]
    arguments.append(f"--format={format}")

    assert main(arguments) == 1
    assert "already holds files" in capsys.readouterr().err
    assert main([*arguments, "--overwrite"]) == 0
    assert not (tmp_path / "old").exists()
