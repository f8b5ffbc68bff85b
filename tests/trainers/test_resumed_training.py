"""Tests of resuming whole jobs."""

import dataclasses
import json
import shutil

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import DualEncoder
from tf_samtone.trainers import (
    EvaluationRecipe,
    StageRecipe,
    TrainingRecipe,
    train,
    training,
)
from tf_samtone.trainers.train_main import main


def without_seconds(results):
    results = json.loads(json.dumps(results))
    results.pop("seconds")
    for stages in results["training"].values():
        for stage in stages:
            stage.pop("seconds")
    return results


@pytest.fixture(scope="module")
def recipe(make_recipe):
    """A recipe that validates, stops early, and compares two losses."""
    return make_recipe(
        stages=(StageRecipe(steps=4, batch_size=4, learning_rate=0.1),),
        training=TrainingRecipe(
            validate_every=1, early_stopping_patience=2, best_metric="P@1"
        ),
        evaluation=EvaluationRecipe(
            metrics=("P@1", "MRR@10"),
            splits=("test",),
            compare_losses=("in_batch_softmax",),
        ),
    )


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    """Results and folder of a finished job."""
    folder = tmp_path_factory.mktemp("finished") / "output"
    return train(recipe, folder), folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of the folder."""
    return shutil.copytree(finished[1], tmp_path / "output")


@pytest.fixture
def fitted(monkeypatch):
    """Names of the losses that are trained from now on."""
    names = []
    fit_stages = training.fit_stages

    def remember(model, recipe, pairs_of, loss, *arguments, **options):
        names.append(loss.name)
        return fit_stages(model, recipe, pairs_of, loss, *arguments, **options)

    monkeypatch.setattr(training, "fit_stages", remember)
    return names


def test_a_finished_job_is_not_done_again(recipe, finished, folder, fitted):
    assert train(recipe, folder, resume=True) == finished[0]
    assert fitted == []


def test_a_finished_loss_is_not_trained_again(recipe, finished, folder, fitted):
    path = folder / "results.json"
    results = json.loads(path.read_text())
    for part in ("figures", "training", "seconds"):
        del results[part]["in_batch_softmax"]
    path.write_text(json.dumps(results))
    shutil.rmtree(folder / "checkpoints" / "in_batch_softmax")

    resumed = train(recipe, folder, resume=True)

    assert fitted == ["in_batch_softmax"]
    assert without_seconds(resumed) == without_seconds(finished[0])


def test_a_kill_during_evaluation_costs_no_step(
    recipe, finished, folder, monkeypatch
):
    # Trained, saved, and killed before the first figures.
    (folder / "results.json").unlink()
    monkeypatch.setattr(DualEncoder, "fit", None)

    resumed = train(recipe, folder, resume=True)

    assert without_seconds(resumed) == without_seconds(finished[0])


def test_the_stage_ended_early_with_its_validations(finished):
    # P@1 of the two dev queries hardly changes; patience is 2.
    stage = finished[0]["training"]["samtone"][0]
    steps = [step for step, _ in stage["validations"]]

    assert stage["steps"] == steps[-1] <= 4
    assert steps == list(range(1, steps[-1] + 1))


def test_the_best_model_is_saved_and_evaluated(finished):
    folder = finished[1]
    saved = DualEncoder.from_preset(str(folder / "model"))
    best = DualEncoder.from_preset(str(folder / "best" / "samtone" / "model"))

    for actual, expected in zip(saved.weights, best.weights, strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_an_empty_folder_is_started(recipe, tmp_path, fitted):
    quick = dataclasses.replace(
        recipe,
        training=TrainingRecipe(checkpoint_every=0),
        evaluation=EvaluationRecipe(splits=("test",), bm25=False),
    )
    train(quick, tmp_path / "output", resume=True)

    assert fitted == ["samtone"]
    # checkpoint_every=0 writes none.
    assert not (tmp_path / "output" / "checkpoints").exists()


def test_another_recipe_is_refused_before_any_work(recipe, folder, fitted):
    before = sorted(folder.rglob("*"))
    with pytest.raises(InvalidInputError, match=r"seed=0 \(now 1\)"):
        train(dataclasses.replace(recipe, seed=1), folder, resume=True)

    assert sorted(folder.rglob("*")) == before


def test_resuming_and_overwriting_exclude_each_other(recipe, folder):
    with pytest.raises(InvalidInputError, match="overwrite or resume"):
        train(recipe, folder, resume=True, overwrite=True)


def test_the_command_line_passes_its_flags_on(
    recipe, tmp_path, monkeypatch, capsys
):
    received = {}

    def pretend(recipe, output, **options):
        received.update(options, name=recipe.name)
        return {"figures": {}}

    monkeypatch.setattr(training, "train", pretend)
    flags = ["--recipe=medquad", "--resume", f"--profile={tmp_path}"]

    assert main(["samtone-train", *flags]) == 0
    assert received == {
        "name": "medquad",
        "overwrite": False,
        "resume": True,
        "profile_dir": str(tmp_path),
    }


def test_a_dry_run_trains_nothing(monkeypatch, capsys):
    from tf_samtone.trainers import dry_run

    monkeypatch.setattr(dry_run, "dry_run", lambda recipe: "one line")
    monkeypatch.setattr(training, "train", None)

    assert main(["samtone-train", "--recipe=medquad", "--dry_run"]) == 0
    assert capsys.readouterr().out == "one line\n"
