"""Tests of which callbacks a recipe brings."""

import pytest

from tf_samtone.trainers import TrainingRecipe
from tf_samtone.trainers.builders import read_collection
from tf_samtone.trainers.run_callbacks import best_model, run_callbacks
from tf_samtone.trainers.run_position import RunPosition
from tf_samtone.trainers.stage_callbacks import StageCallbacks


@pytest.fixture(scope="module")
def collection(make_recipe):
    return read_collection(make_recipe().data)


@pytest.fixture
def make(make_recipe, collection, tmp_path):
    """Returns a function that makes the callbacks of a run and of a stage."""

    def make_both(profile_dir=None, first_step=0, **training):
        recipe = make_recipe(training=TrainingRecipe(**training))
        of_run = run_callbacks(
            recipe, collection, tmp_path, "samtone", profile_dir
        )
        of_stage = StageCallbacks(
            recipe.stages[0],
            recipe.training,
            collection.pairs("train"),
            of_run,
            steps_before=10,
            first_step=first_step,
        )
        return of_run, of_stage

    return make_both


def names(callbacks):
    return [type(callback).__name__ for callback in callbacks]


def test_a_plain_recipe_brings_progress_and_guard_alone(make):
    of_run, of_stage = make()

    assert names(of_run) == []
    assert names(of_stage.in_order()) == ["ProgressLines", "CollapseGuard"]


def test_each_works_after_those_that_it_looks_at(make, tmp_path):
    _, of_stage = make(
        profile_dir=tmp_path / "profile",
        validate_every=2,
        early_stopping_patience=3,
        tensorboard=True,
    )

    assert names(of_stage.in_order()) == [
        "ProgressLines",
        "CollapseGuard",
        "RetrievalValidation",
        "BestModel",
        "TensorBoardScalars",
        "ProfileSteps",
        "EarlyStopping",
    ]


def test_options_of_the_validation_reach_it(make):
    validation, best = make(
        validate_every=7, validation_documents=3, best_metric="P@1"
    )[0]

    assert validation.every_steps == 7
    assert validation.split == "dev"
    assert validation.metrics[0] == "P@1"
    assert best.directory.parts[-2:] == ("best", "samtone")


def test_steps_are_counted_through_stages_or_within_one(make):
    of_run, of_stage = make(first_step=2, validate_every=7)
    progress, guard = of_stage.in_order()[:2]

    assert of_run[0].first_step == 12
    assert (progress.first_step, guard.first_step) == (2, 2)


def test_the_best_metric_is_that_of_the_very_step(make):
    (validation, _), of_stage = make(validate_every=2)
    validation.history = [(12, {"MRR@10": 0.25})]

    assert of_stage.best_metric_at(2) == 0.25
    assert of_stage.best_metric_at(3) is None


def test_the_record_of_a_stage_has_its_own_validations(make):
    (validation, _), of_stage = make(validate_every=2)
    validation.history = [(10, {"MRR@10": 0.1}), (12, {"MRR@10": 0.2})]

    assert of_stage.record() == {
        "steps": 3,
        "validations": [[2, {"MRR@10": 0.2}]],
    }


def test_a_stage_that_stopped_early_records_its_steps(make):
    _, of_stage = make(validate_every=1, early_stopping_patience=1)
    of_stage.of_stage[0].stopped_step = 12

    assert of_stage.record()["steps"] == 2


def test_without_validation_the_last_model_is_the_best(make, make_recipe):
    model = object()

    assert best_model(make()[0], model, make_recipe()) is model


def test_the_best_model_is_loaded(
    make, make_recipe, make_tiny_dual_encoder, tmp_path
):
    callbacks = make(validate_every=1)[0]
    saved = make_tiny_dual_encoder(seed=4)
    saved.save_to_preset(tmp_path / "best" / "samtone" / "model")
    (tmp_path / "best" / "samtone" / "best.json").write_text("{}")
    callbacks[1].restore({"metric": "MRR@10", "best": 0.5, "best_step": 3})

    found = best_model(callbacks, make_tiny_dual_encoder(), make_recipe())
    assert found.fingerprint() == saved.fingerprint()


def test_a_stage_that_ended_early_counts_in_full(make_recipe):
    position = RunPosition(step=2).after_stage({"steps": 2})

    # Numbers of checkpoints must not run backwards.
    assert position.steps_before(make_recipe()) == 3
    assert position.history == [{"steps": 2}]
