"""Tests of the quickstart on a tiny package and a tiny model."""

import dataclasses
import json

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError, OutputExistsError
from tf_samtone.evaluation import read_run
from tf_samtone.models import DualEncoder
from tf_samtone.retrieval import ScannIndex
from tf_samtone.trainers import (
    DataRecipe,
    ModelRecipe,
    OptimizerRecipe,
    Recipe,
    StageRecipe,
    TrainingRecipe,
    read_recipe,
)
from tf_samtone.trainers.quickstart import quickstart
from tf_samtone.trainers.quickstart_main import report

ROWS = ["chance", "bm25", "untrained", "trained", "hybrid"]


def tiny_recipe(package):
    return Recipe(
        name="tiny",
        data=DataRecipe(reader="python_docs", packages=(package,)),
        model=ModelRecipe(
            projection_dim=8,
            query_length=8,
            document_length=24,
            vocabulary_size=200,
            num_layers=1,
            num_heads=2,
            hidden_dim=16,
            intermediate_dim=16,
            residual_init_scale=0.0,
        ),
        optimizer=OptimizerRecipe(name="adamw", global_clipnorm=1.0),
        stages=(
            StageRecipe(pairs="weak", steps=2, batch_size=8, num_layers=0),
            StageRecipe(name="pairs", steps=2, batch_size=8),
        ),
    )


@pytest.fixture(scope="module")
def finished(tiny_package, tmp_path_factory):
    """Results, output folder and exported models of one run."""
    output = tmp_path_factory.mktemp("quickstart") / "output"
    exported = []
    results = quickstart(
        tiny_recipe(tiny_package),
        output,
        questions=["Find a horse!"],
        export=lambda model, folder: exported.append((model, folder)),
    )
    return results, output, exported


def test_every_system_is_measured_on_dev_and_test(finished):
    figures = finished[0]["figures"]

    assert sorted(figures) == sorted(ROWS)
    for row in figures.values():
        assert list(row) == ["dev", "test"]
        assert list(row["test"]) == ["P@1", "MRR@10", "R@10", "R@100"]


def test_chance_is_the_expectation_over_random_orders(finished):
    chance = finished[0]["figures"]["chance"]["test"]

    # 120 documents, one of them relevant.
    assert chance["P@1"] == pytest.approx(1 / 120)
    assert chance["MRR@10"] == pytest.approx(
        sum(1 / rank for rank in range(1, 11)) / 120
    )
    assert chance["R@100"] == pytest.approx(100 / 120)


def test_run_leaves_its_results(finished):
    results, output, _ = finished

    assert json.loads((output / "results.json").read_text()) == results
    recipe = json.loads((output / "recipe.json").read_text())
    assert recipe["stages"][0]["num_layers"] == 0
    assert (output / "vocabulary.spm").is_file()
    assert (
        len(read_run(output / "runs" / "hybrid-test.trec"))
        == (results["texts"]["test_queries"])
    )


def test_saved_model_has_all_layers_and_fits_the_index(finished):
    _, output, exported = finished

    model = DualEncoder.from_preset(str(output / "model"))
    index = ScannIndex.load(output / "index")

    assert model.query_tower.encoder.num_layers == 1
    assert index.model_fingerprint == model.fingerprint()
    assert [folder for _, folder in exported] == [output / "saved_model"]


def test_answers_are_the_nearest_functions(finished):
    results, output, exported = finished
    model = exported[0][0]

    names = results["answers"]["Find a horse!"]

    assert len(names) == 5
    index = ScannIndex.load(output / "index")
    _, ids = index.search(model.encode_queries(["find a horse"]), 5)
    assert np.array_equal(ids[0], names)


def test_report_shows_the_table_and_the_answers(finished):
    text = report(finished[0])

    positions = [text.index(f"| {name} |") for name in ROWS]
    assert positions[0] == min(positions)
    assert "ScaNN recall@10 against exact search: " in text
    assert "Find a horse!?" not in text
    assert "Find a horse!" in text


def test_folder_with_results_is_refused(finished, tiny_package):
    _, output, _ = finished

    # Results of a long run must not vanish by a repeated command.
    with pytest.raises(OutputExistsError, match="overwrite"):
        quickstart(tiny_recipe(tiny_package), output)


@pytest.mark.parametrize(
    "option",
    [
        {"strategy": "mirrored", "devices": 2},
        {"validate_every": 5},
        {"tensorboard": True},
    ],
    ids=lambda option: next(iter(option)),
)
def test_option_that_would_be_ignored_is_refused(
    option, tiny_package, tmp_path
):
    recipe = dataclasses.replace(
        tiny_recipe(tiny_package), training=TrainingRecipe(**option)
    )

    with pytest.raises(InvalidInputError, match=next(iter(option))):
        quickstart(recipe, tmp_path / "output")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": ModelRecipe(preset="t5_small")},
        {"data": DataRecipe(path="folder")},
    ],
    ids=["preset", "reader"],
)
def test_recipe_of_another_job_is_refused(changes, tiny_package, tmp_path):
    recipe = tiny_recipe(tiny_package)
    stages = tuple(
        dataclasses.replace(stage, pairs="train", num_layers=-1)
        for stage in recipe.stages
    )
    recipe = dataclasses.replace(recipe, stages=stages, **changes)

    # Checked before the output folder is made.
    with pytest.raises(InvalidInputError, match="samtone-train"):
        quickstart(recipe, tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_installed_recipe_starts_as_a_mean_of_embeddings():
    recipe = read_recipe("quickstart")

    assert recipe.model.residual_init_scale == 0
    assert recipe.stages[0].num_layers == 0
