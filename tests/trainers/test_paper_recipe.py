"""Tests of the recipes of the papers."""

import dataclasses

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers import paper_recipe


def make(size="t5_1.1_base", **changes):
    options = {"preset": "weights", "path": "collection", **changes}
    return paper_recipe(size, **options)


def test_samtone_is_trained_as_its_paper_states():
    # Moiseev et al., 2023, section 3: batch 512, 20,000 steps, 1e-3 to 0.
    recipe = make("t5_1.1_large")
    (stage,) = recipe.stages
    assert (stage.steps, stage.batch_size) == (20_000, 512)
    assert (stage.learning_rate, stage.warmup_steps) == (1e-3, 0)
    assert (recipe.loss.name, recipe.loss.temperature) == ("samtone", 0.01)
    assert (recipe.loss.same_tower, recipe.loss.bidirectional) == (
        "query",
        True,
    )
    assert recipe.optimizer.name == "adafactor"
    assert recipe.model.architecture == "sde"


@pytest.mark.parametrize(
    ("stage", "steps"), [("pre-training", 800_000), ("fine-tuning", 20_000)]
)
def test_each_stage_of_gtr_is_a_recipe(stage, steps):
    # Ni et al., 2021, section 4.2.
    recipe = make("gtr_base", stage=stage)
    assert [s.name for s in recipe.stages] == [stage]
    assert (recipe.stages[0].steps, recipe.stages[0].batch_size) == (
        steps,
        2048,
    )
    assert recipe.loss.name == "in_batch_softmax"
    assert recipe.model.document_length == 512


def test_weights_and_collection_are_those_given(tmp_path):
    recipe = make(preset=tmp_path / "model", path=tmp_path)
    assert recipe.model.preset == str(tmp_path / "model")
    assert recipe.data.path == str(tmp_path)
    assert recipe.model.projection_dim == 768


def test_names_of_stages_differ_and_make_folders():
    assert make("gtr_xl").name == "gtr_xl_fine_tuning"


def test_other_values_are_replaced():
    recipe = make()
    model = dataclasses.replace(recipe.model, architecture="ade-spl")
    changed = dataclasses.replace(recipe, model=model)
    assert changed.model.architecture == "ade-spl"
    assert changed.stages == recipe.stages


def test_a_size_without_a_paper_lists_those_with_one():
    with pytest.raises(
        InvalidInputError, match=r"'gtr_xxl'.*size='t5_base'"
    ) as caught:
        make("t5_base")
    assert "'t5_small'" not in str(caught.value)


def test_an_unknown_stage_lists_those_of_the_size():
    with pytest.raises(
        InvalidInputError, match=r"\['fine-tuning'\].*stage='pre-training'"
    ):
        make(stage="pre-training")


def test_an_unknown_size_is_refused():
    with pytest.raises(InvalidInputError, match="size"):
        make("gtr_small")
