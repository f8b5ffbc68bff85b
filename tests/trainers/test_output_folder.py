"""Tests of new, replaced and resumed output folders."""

import dataclasses
import json

import pytest

from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    OutputExistsError,
)
from tf_samtone.trainers import LossRecipe, StageRecipe, TrainingRecipe
from tf_samtone.trainers.output_folder import (
    prepare_output,
    read_results,
    recipe_differences,
    resume_output,
    start_output,
    write_results,
)


@pytest.fixture
def started(make_recipe, tmp_path):
    """Recipe and folder of a run that has been started."""
    recipe = make_recipe(training=TrainingRecipe(checkpoint_every=5))
    start_output(tmp_path, recipe)
    return recipe, tmp_path


def test_the_same_recipe_is_resumed(started):
    recipe, folder = started
    assert resume_output(folder, recipe)


def test_an_empty_folder_has_nothing_to_resume(make_recipe, tmp_path):
    assert not resume_output(tmp_path / "absent", make_recipe())


def test_a_kill_before_the_first_file_leaves_nothing_to_resume(
    make_recipe, tmp_path
):
    (tmp_path / ".recipe.json.tmp-0123456789ab").write_text("{")

    assert not resume_output(tmp_path, make_recipe())
    assert list(tmp_path.iterdir()) == []


def test_leftovers_of_a_kill_are_cleaned_up_in_subfolders_too(started):
    recipe, folder = started
    (folder / "best" / ".samtone.old-0123456789ab").mkdir(parents=True)
    (folder / "runs").mkdir()
    (folder / "runs" / ".a.trec.tmp-0123456789ab").write_text("half")

    assert resume_output(folder, recipe)
    # The best model had been moved aside for a better one that never came.
    assert (folder / "best" / "samtone").is_dir()
    assert list((folder / "runs").iterdir()) == []


def test_a_folder_of_something_else_is_refused(make_recipe, tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")

    with pytest.raises(OutputExistsError, match=r"no recipe\.json"):
        resume_output(tmp_path, make_recipe())


def test_every_difference_of_the_recipe_is_listed(started):
    recipe, folder = started
    changed = dataclasses.replace(
        recipe,
        seed=7,
        loss=LossRecipe(temperature=0.5),
        stages=(StageRecipe(steps=3, batch_size=2), recipe.stages[0]),
    )

    with pytest.raises(InvalidInputError) as caught:
        resume_output(folder, changed)
    message = str(caught.value)
    assert "seed=0 (now 7)" in message
    assert "loss.temperature=0.01 (now 0.5)" in message
    assert "stages.0.batch_size=4 (now 2)" in message
    assert "stages.1.steps=none (now 3)" in message
    assert "loss.name" not in message


@pytest.mark.parametrize(
    "change",
    [
        {"checkpoint_every": 9},
        {"keep_checkpoints": 4},
        {"tensorboard": True},
        {"strategy": "mirrored", "devices": 2},
        {"gradient_cache_batch_size": 2},
        {"rematerialize": True},
        {"max_bad_steps": 1},
    ],
    ids=lambda change: next(iter(change)),
)
def test_how_a_run_is_run_may_change(started, change):
    recipe, folder = started
    training = dataclasses.replace(recipe.training, **change)

    assert resume_output(folder, dataclasses.replace(recipe, training=training))


@pytest.mark.parametrize(
    "change",
    [{"packing": "rows"}, {"last_batch": "pad"}, {"validate_every": 3}],
    ids=lambda change: next(iter(change)),
)
def test_what_decides_on_the_result_may_not(started, change):
    recipe, folder = started
    training = dataclasses.replace(recipe.training, **change)
    changed = dataclasses.replace(recipe, training=training)

    with pytest.raises(InvalidInputError, match=next(iter(change))):
        resume_output(folder, changed)


def test_a_damaged_recipe_is_named(started):
    recipe, folder = started
    (folder / "recipe.json").write_text("{")

    with pytest.raises(CorruptFileError, match=r"recipe\.json"):
        resume_output(folder, recipe)


def test_a_new_start_forgets_results_and_checkpoints(started):
    recipe, folder = started
    write_results(folder, {"figures": {"samtone": {}}})
    (folder / "checkpoints" / "samtone").mkdir(parents=True)

    start_output(folder, dataclasses.replace(recipe, seed=8))

    # Else a resumed run would take them for its own.
    assert read_results(folder) is None
    assert not (folder / "checkpoints").exists()
    assert json.loads((folder / "recipe.json").read_text())["seed"] == 8


def test_refusing_old_results_mentions_both_ways_on(started):
    with pytest.raises(OutputExistsError, match="--overwrite.*--resume"):
        prepare_output(started[1], overwrite=False)


def test_a_list_of_numbers_is_one_value():
    found = recipe_differences({"a": [1, 2], "b": 1}, {"a": (1, 3), "b": 1})

    assert found == [("a", "a=[1, 2] (now [1, 3])")]
