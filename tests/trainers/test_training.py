"""Tests of training by a recipe."""

import dataclasses
import json

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError, OutputExistsError
from tf_samtone.evaluation import evaluate, read_run
from tf_samtone.models import DualEncoder
from tf_samtone.trainers import (
    DataRecipe,
    EvaluationRecipe,
    StageRecipe,
    train,
)
from tf_samtone.trainers.training import summary


@pytest.fixture(scope="module")
def trained(make_recipe, tmp_path_factory):
    """Results and output folder of a run that compares two losses."""
    recipe = make_recipe(
        evaluation=EvaluationRecipe(
            metrics=("P@1", "MRR@10"), compare_losses=("in_batch_softmax",)
        )
    )
    output = tmp_path_factory.mktemp("trained") / "output"
    return train(recipe, output), output


def test_a_run_leaves_model_recipe_runs_and_results(trained):
    results, output = trained
    assert json.loads((output / "results.json").read_text()) == results
    recipe = json.loads((output / "recipe.json").read_text())
    assert recipe["loss"]["temperature"] == 0.01
    assert DualEncoder.from_preset(str(output / "model")).dim == 8


def test_figures_agree_with_the_runs_on_disk(trained, beir_folder):
    results, output = trained
    run = read_run(output / "runs" / "samtone-test.trec")
    lines = (beir_folder / "qrels" / "test.tsv").read_text().splitlines()
    qrels = {}
    for line in lines[1:]:
        query, document, grade = line.split("\t")
        qrels.setdefault(query, {})[document] = int(grade)
    expected = evaluate(run, qrels, ["P@1", "MRR@10"])
    assert results["figures"]["samtone"]["test"] == expected


def test_the_table_has_a_row_per_system(trained):
    table = summary(trained[0])
    assert [name in table for name in ("bm25", "samtone", "in_batch")] == [
        True,
        True,
        True,
    ]


def test_results_are_not_replaced_unasked(make_recipe, tmp_path):
    (tmp_path / "results.json").write_text("precious")
    with pytest.raises(OutputExistsError, match="overwrite"):
        train(make_recipe(), tmp_path)
    assert (tmp_path / "results.json").read_text() == "precious"


def test_a_missing_folder_says_what_to_get(make_recipe, tmp_path):
    data = DataRecipe(path="./absent", how_to_get="Get it there.")
    with pytest.raises(InvalidInputError, match="absent.*Get it there"):
        train(make_recipe(data=data), tmp_path / "output")
    assert not (tmp_path / "output").exists()


def test_an_unknown_split_is_refused_before_training(make_recipe, tmp_path):
    evaluation = EvaluationRecipe(splits=("validation",))
    with pytest.raises(InvalidInputError, match="validation"):
        train(make_recipe(evaluation=evaluation), tmp_path / "output")


def test_the_same_recipe_gives_the_same_weights(make_recipe, tmp_path):
    recipe = make_recipe(
        evaluation=EvaluationRecipe(splits=("test",), bm25=False)
    )
    weights = []
    for name in ("first", "second"):
        train(recipe, tmp_path / name)
        model = DualEncoder.from_preset(str(tmp_path / name / "model"))
        weights.append(model.query_tower.projection.kernel.numpy())
    np.testing.assert_array_equal(*weights)


def test_the_seed_decides_the_run(make_recipe, tmp_path):
    recipe = make_recipe(
        evaluation=EvaluationRecipe(splits=("test",), bm25=False)
    )
    losses = [
        train(dataclasses.replace(recipe, seed=seed), tmp_path / str(seed))[
            "training"
        ]["samtone"][0]["loss"]
        for seed in (0, 1)
    ]
    assert losses[0] != losses[1]


def test_each_stage_is_trained_and_recorded(make_recipe, tmp_path):
    stages = (
        StageRecipe(name="first", steps=2, batch_size=2),
        StageRecipe(name="second", steps=1, batch_size=4, group_size=2),
    )
    evaluation = EvaluationRecipe(splits=("test",), bm25=False)
    recipe = make_recipe(stages=stages, evaluation=evaluation)
    results = train(recipe, tmp_path / "output")
    steps = [(s["stage"], s["steps"]) for s in results["training"]["samtone"]]
    assert steps == [("first", 2), ("second", 1)]
