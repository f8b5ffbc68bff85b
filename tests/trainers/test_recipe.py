"""Tests of the recipe dataclasses."""

import dataclasses

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers import (
    DataRecipe,
    EvaluationRecipe,
    LossRecipe,
    ModelRecipe,
    OptimizerRecipe,
    Recipe,
    StageRecipe,
)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LossRecipe(temperature=0.0), "temperature=0.0"),
        (lambda: LossRecipe(name="hinge"), "loss.name='hinge'"),
        (lambda: StageRecipe(steps=1, batch_size=1), "batch_size=1"),
        (lambda: StageRecipe(steps=0, batch_size=8), "steps=0"),
        (
            lambda: StageRecipe(steps=1, batch_size=2, learning_rate=-1.0),
            "learning_rate=-1.0",
        ),
        (lambda: ModelRecipe(preset="x", dropout=1.0), "dropout=1.0"),
        (lambda: ModelRecipe(preset="x", dtype="float16"), "float16"),
        (lambda: ModelRecipe(preset="x", architecture="tde"), "'tde'"),
        (lambda: ModelRecipe(), "num_layers=0"),
        (
            lambda: ModelRecipe(
                num_layers=1, vocabulary_size=64, embedding_init_scale=0.0
            ),
            "embedding_init_scale=0.0",
        ),
        (
            lambda: StageRecipe(steps=1, batch_size=2, num_layers=-2),
            "num_layers=-2",
        ),
        (lambda: DataRecipe(), "data.path=''"),
        (lambda: DataRecipe(reader="csv"), "data.reader='csv'"),
        (lambda: OptimizerRecipe(name="sgd"), "optimizer.name='sgd'"),
        (lambda: EvaluationRecipe(compare_losses=("x",)), "loss.name='x'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_out_of_range_is_named(make, message):
    with pytest.raises(InvalidInputError) as caught:
        make()
    assert message in str(caught.value)


def test_a_recipe_needs_a_stage(make_recipe):
    with pytest.raises(InvalidInputError, match="stages"):
        make_recipe(stages=())


def test_weak_pairs_need_the_python_docs_reader(make_recipe):
    stage = StageRecipe(steps=1, batch_size=2, pairs="weak")
    with pytest.raises(InvalidInputError, match="weak"):
        make_recipe(stages=(stage,))


def test_a_recipe_cannot_be_changed(make_recipe):
    with pytest.raises(dataclasses.FrozenInstanceError):
        make_recipe().seed = 1


@pytest.mark.parametrize(
    ("model", "num_layers"),
    [
        (ModelRecipe(preset="x"), 0),
        (ModelRecipe(num_layers=1, vocabulary_size=64), 2),
    ],
    ids=["preset", "more than the model has"],
)
def test_a_stage_cannot_have_layers_that_the_model_has_not(model, num_layers):
    # A preset comes with its layers; others are added up to the model's.
    with pytest.raises(InvalidInputError, match=f"num_layers={num_layers}"):
        Recipe(
            name="x",
            data=DataRecipe(path="x"),
            model=model,
            stages=(StageRecipe(steps=1, batch_size=2, num_layers=num_layers),),
        )
