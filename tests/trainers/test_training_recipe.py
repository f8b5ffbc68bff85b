"""Tests of how a recipe's training is run."""

import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers import StageRecipe, TrainingRecipe, read_recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": "horovod"}, "strategy='horovod'"),
        ({"strategy": "multi_worker"}, "several processes"),
        ({"packing": "all"}, "packing='all'"),
        ({"last_batch": "keep"}, "last_batch='keep'"),
        ({"devices": 2}, "devices=2"),
        ({"devices": -1, "strategy": "mirrored"}, "devices=-1"),
        ({"gradient_cache_batch_size": -1}, "gradient_cache_batch_size=-1"),
        ({"max_bad_steps": 0}, "max_bad_steps=0"),
        ({"checkpoint_every": -1}, "checkpoint_every=-1"),
        ({"keep_checkpoints": 0}, "keep_checkpoints=0"),
        ({"validate_every": -1}, "validate_every=-1"),
        ({"validation_documents": 0}, "validation_documents=0"),
        ({"best_metric": "accuracy"}, "metric='accuracy'"),
        ({"early_stopping_patience": 3}, "validate_every=0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_value_that_cannot_be_used_is_named(changes, message):
    with pytest.raises(InvalidInputError) as caught:
        TrainingRecipe(**changes)
    assert message in str(caught.value)


def test_a_batch_that_replicas_cannot_share_is_refused(make_recipe):
    training = TrainingRecipe(strategy="mirrored", devices=3)
    stage = StageRecipe(steps=1, batch_size=8)
    with pytest.raises(InvalidInputError, match="multiple of the 3 replicas"):
        make_recipe(training=training, stages=(stage,))


@pytest.mark.parametrize(
    ("devices", "micro"), [(0, 3), (2, 8)], ids=["batch", "replica's share"]
)
def test_a_micro_batch_must_divide_what_a_replica_has(
    make_recipe, devices, micro
):
    training = TrainingRecipe(
        strategy="mirrored" if devices else "none",
        devices=devices,
        gradient_cache_batch_size=micro,
    )
    stage = StageRecipe(steps=1, batch_size=8)
    with pytest.raises(InvalidInputError, match=f"batch_size={micro}"):
        make_recipe(training=training, stages=(stage,))


def test_the_table_is_read_from_a_recipe_file(tmp_path):
    (tmp_path / "tiny.toml").write_text(
        'name = "tiny"\ndata.path = "x"\nmodel.preset = "t5"\n'
        "[[stages]]\nsteps = 1\nbatch_size = 4\nunique_texts = true\n"
        '[training]\npacking = "rows"\ncheckpoint_every = 7\n'
    )
    recipe = read_recipe(tmp_path / "tiny.toml")

    assert recipe.training.packing == "rows"
    assert recipe.training.checkpoint_every == 7
    assert recipe.stages[0].unique_texts
