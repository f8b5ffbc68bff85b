"""Tests of the dry run."""

import re

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers import (
    DataRecipe,
    EvaluationRecipe,
    ModelRecipe,
    StageRecipe,
    TrainingRecipe,
)
from tf_samtone.trainers.dry_run import dry_run


@pytest.fixture(scope="module")
def report(make_recipe):
    stages = (
        StageRecipe(name="first", steps=4, batch_size=4),
        StageRecipe(name="second", steps=2, batch_size=2),
    )
    evaluation = EvaluationRecipe(compare_losses=("in_batch_softmax",))
    return dry_run(make_recipe(stages=stages, evaluation=evaluation))


def test_data_and_stages_are_counted(report):
    assert "data: 6 documents; queries with judgments: " in report
    assert "train 8" in report
    # Four steps of four of eight pairs, and two of two.
    assert "'first': 8 pairs of 'train', 4 steps of 4, 2.00 epochs" in report
    assert "'second': 8 pairs of 'train', 2 steps of 2, 0.50 epochs" in report


def test_parameters_add_up_by_part(report):
    line = next(x for x in report.splitlines() if x.startswith("model:"))
    numbers = [int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", line)]
    total, embeddings, projections, layers, trained = numbers
    assert embeddings + projections + layers == total == trained
    # Hidden states of the tiny encoder are projected to 8.
    assert projections % 8 == 0


def test_lengths_memory_and_times_are_told(report):
    for part in (
        "queries: ",
        "documents: ",
        "are cut at 6",
        "are cut at 8",
        "that hold tokens: queries ",
        "memory per device, by the formula: ",
        " pairs/s, ",
        "all steps of in_batch_softmax and samtone: ",
    ):
        assert part in report


def test_no_file_is_written(make_recipe, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dry_run(make_recipe())
    assert not list(tmp_path.iterdir())


def test_packed_batches_are_fuller(make_recipe, preset_folder):
    # Far longer than the texts, so that padding is most of a batch.
    model = ModelRecipe(
        preset=str(preset_folder), query_length=48, document_length=48
    )

    report = dry_run(
        make_recipe(
            model=model,
            stages=(StageRecipe(steps=1, batch_size=8),),
            training=TrainingRecipe(packing="rows"),
        )
    )
    mean = float(re.search(r"queries: ([\d.]+) tokens on average", report)[1])
    share = int(re.search(r"hold tokens: queries (\d+)%", report)[1])
    assert share > 1.5 * 100 * mean / 48


def test_a_missing_folder_says_what_to_get(make_recipe):
    data = DataRecipe(path="./absent", how_to_get="Get it there.")
    with pytest.raises(InvalidInputError, match=r"absent.*Get it there"):
        dry_run(make_recipe(data=data))


def test_a_recipe_without_preset_is_refused(make_recipe):
    model = ModelRecipe(num_layers=1, vocabulary_size=100)
    with pytest.raises(InvalidInputError, match="an empty preset"):
        dry_run(make_recipe(model=model))
