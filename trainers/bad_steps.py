"""The pairs of the steps that were not finite, written out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tf_samtone._files import atomic_write_text
from tf_samtone.data import Pair, batch_rows
from tf_samtone.errors import NonFiniteError
from tf_samtone.text import fingerprint
from tf_samtone.trainers.builders import group_ids
from tf_samtone.trainers.recipe import Recipe, StageRecipe

__all__ = ["BAD_STEPS", "pairs_of_steps", "with_report"]

BAD_STEPS = "bad_steps.json"


def with_report(
    error: NonFiniteError,
    recipe: Recipe,
    stage: StageRecipe,
    pairs: Sequence[Pair],
    directory: Path,
) -> NonFiniteError:
    """Writes the pairs of the bad steps, and says where in the error.

    Args:
        error: `NonFiniteError` of the stage.
        recipe: `Recipe`.
        stage: `StageRecipe`.
        pairs: list of `Pair` of the stage.
        directory: folder for `bad_steps.json`.

    Returns:
        `NonFiniteError` to raise.
    """
    path = directory / BAD_STEPS
    report = {
        "stage": stage.name,
        "steps": pairs_of_steps(error.steps, recipe, stage, pairs),
    }
    text = json.dumps(report, indent=2, ensure_ascii=False)
    directory.mkdir(parents=True, exist_ok=True)
    atomic_write_text(path, text + "\n")
    return NonFiniteError(f"{error} Their pairs are in {path}.", error.steps)


def pairs_of_steps(
    steps: Sequence[int],
    recipe: Recipe,
    stage: StageRecipe,
    pairs: Sequence[Pair],
) -> list[dict[str, Any]]:
    """Returns, for each step, its number and the ids and texts of its pairs.

    Args:
        steps: numbers of steps of the stage, from 1.
        recipe: `Recipe`.
        stage: `StageRecipe`.
        pairs: list of `Pair` of the stage.
    """
    unique_ids = None
    if stage.unique_texts:
        unique_ids = (
            fingerprint([pair.query for pair in pairs]),
            fingerprint([pair.document for pair in pairs]),
        )
    found = []
    for step in steps:
        rows = batch_rows(
            len(pairs),
            stage.batch_size,
            step - 1,
            seed=recipe.seed,
            group_ids=group_ids(pairs, stage),
            last_batch=recipe.training.last_batch,
            unique_ids=unique_ids,
        )
        found.append({"step": step, "pairs": [vars(pairs[i]) for i in rows]})
    return found
