"""The stages of a recipe, one `fit` each."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras

from tf_samtone.data import Pair
from tf_samtone.evaluation import in_batch_metrics
from tf_samtone.models import DualEncoder
from tf_samtone.trainers.builders import (
    build_dataset,
    build_loss,
    build_optimizer,
)
from tf_samtone.trainers.collapse_guard import CollapseGuard
from tf_samtone.trainers.progress_lines import ProgressLines
from tf_samtone.trainers.recipe import LossRecipe, Recipe

__all__ = ["fit_stages"]

_LOGGER = logging.getLogger("tf_samtone")


def fit_stages(
    model: DualEncoder,
    recipe: Recipe,
    pairs_of: Callable[[str], Sequence[Pair]],
    loss: LossRecipe | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> list[dict[str, Any]]:
    """Trains a model through all stages of a recipe.

    Args:
        model: `DualEncoder`; trained in place.
        recipe: `Recipe`.
        pairs_of: function from the name of a pair source (`"train"`,
            `"weak"`) to a list of `Pair`.
        loss: `LossRecipe` in place of the recipe's own. Defaults to `None`.
        callbacks: Keras callbacks for every stage.

    Returns:
        list of dicts, one per stage: name, pairs, steps, seconds, and the last
        value of each logged figure.

    Raises:
        CollapseError: if all embeddings become one point.
        InvalidInputError: if a stage has fewer pairs than its batch.
    """
    history = []
    for stage in recipe.stages:
        pairs = pairs_of(stage.pairs)
        dataset = build_dataset(model, pairs, stage, recipe.seed)
        model.compile(
            optimizer=build_optimizer(recipe.optimizer, stage),
            loss=build_loss(loss or recipe.loss),
            metrics=in_batch_metrics(),
        )
        _LOGGER.info(
            "%s: %d pairs, %d steps of %d",
            stage.name,
            len(pairs),
            stage.steps,
            stage.batch_size,
        )
        started = time.monotonic()
        fitted = model.fit(
            dataset,
            epochs=1,
            steps_per_epoch=stage.steps,
            verbose=0,
            callbacks=[
                ProgressLines(stage.name, stage.steps, stage.batch_size),
                CollapseGuard([pair.document for pair in pairs], stage.steps),
                *callbacks,
            ],
        )
        history.append(
            {
                "stage": stage.name,
                "pairs": len(pairs),
                "steps": stage.steps,
                "seconds": round(time.monotonic() - started, 1),
                **{k: float(v[-1]) for k, v in fitted.history.items()},
            }
        )
    return history
