"""What a run that is no longer finite leaves behind."""

import dataclasses
import json

import pytest

from tf_samtone.errors import NonFiniteError
from tf_samtone.losses import SamToNeLoss
from tf_samtone.text import fingerprint
from tf_samtone.trainers import StageRecipe, train
from tf_samtone.trainers.bad_steps import pairs_of_steps
from tf_samtone.trainers.builders import (
    build_dataset,
    build_model,
    read_collection,
)


class NanLoss(SamToNeLoss):
    """NaN for every batch."""

    def per_example(self, queries, documents, **batch):
        return float("nan") * super().per_example(queries, documents, **batch)


def test_the_pairs_of_the_bad_steps_are_written_out(
    make_recipe, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "tf_samtone.trainers.builders.build_loss", lambda loss: NanLoss()
    )
    recipe = make_recipe()
    training = dataclasses.replace(recipe.training, max_bad_steps=2)
    recipe = dataclasses.replace(recipe, training=training)
    with pytest.raises(NonFiniteError, match=r"bad_steps\.json") as caught:
        train(recipe, tmp_path / "run")
    assert caught.value.steps == (1, 2)
    report = json.loads((tmp_path / "run" / "bad_steps.json").read_text())
    assert [entry["step"] for entry in report["steps"]] == [1, 2]
    first = report["steps"][0]["pairs"]
    assert len(first) == recipe.stages[0].batch_size
    assert set(first[0]) == {"query", "document", "query_id", "document_id"}


STAGES = {
    "plain": {},
    "groups": {"group_size": 2},
    "unique": {"unique_texts": True},
}


@pytest.mark.parametrize("options", STAGES.values(), ids=STAGES)
def test_they_are_the_pairs_that_the_step_saw(make_recipe, options):
    stage = StageRecipe(steps=5, batch_size=3, **options)
    recipe = make_recipe(stages=(stage,))
    pairs = read_collection(recipe.data).pairs("train")
    model = build_model(recipe)
    batches = build_dataset(model, pairs, stage, recipe.seed).take(5)
    seen = [set(batch["query_ids"].numpy().tolist()) for batch in batches]
    told = pairs_of_steps(range(1, 6), recipe, stage, pairs)
    assert seen == [
        set(fingerprint([p["query"] for p in entry["pairs"]]).tolist())
        for entry in told
    ]
