"""The stages of a recipe, one `fit` each."""

import dataclasses
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import keras

from tf_samtone.data import Pair
from tf_samtone.errors import NonFiniteError
from tf_samtone.models import DualEncoder
from tf_samtone.trainers.bad_steps import with_report
from tf_samtone.trainers.builders import build_dataset, compile_model
from tf_samtone.trainers.checkpointing import RunCheckpoints
from tf_samtone.trainers.recipe import LossRecipe, Recipe, StageRecipe
from tf_samtone.trainers.run_position import RunPosition
from tf_samtone.trainers.stage_callbacks import StageCallbacks
from tf_samtone.trainers.token_statistics import TokenStatistics

__all__ = ["fit_stages"]

_LOGGER = logging.getLogger("tf_samtone")


def fit_stages(
    model: DualEncoder,
    recipe: Recipe,
    pairs_of: Callable[[str], Sequence[Pair]],
    loss: LossRecipe | None = None,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    *,
    checkpoints: RunCheckpoints | None = None,
    report_dir: Path | None = None,
) -> list[dict[str, Any]]:
    """Trains a model through all stages of a recipe.

    With `checkpoints`, SIGTERM and SIGINT save one at the next step and end
    the training; a second signal does what it does elsewhere.

    Args:
        model: `DualEncoder`; trained in place.
        recipe: `Recipe`.
        pairs_of: function from the name of a pair source (`"train"`,
            `"weak"`) to a list of `Pair`.
        loss: `LossRecipe` in place of the recipe's own. Defaults to `None`.
        callbacks: Keras callbacks for every stage; see `StageCallbacks`.
        checkpoints: `RunCheckpoints`, which say where to start. Defaults to
            `None`: none are written.
        report_dir: folder for `bad_steps.json`, the pairs of the steps that
            ended the run because they were not finite. Defaults to `None`.

    Returns:
        list of dicts, one per stage: name, pairs, steps, seconds, the last
        value of each logged figure, and the validations if there were any.

    Raises:
        CollapseError: if all embeddings become one point.
        InvalidInputError: if a stage has fewer pairs than its batch.
        MismatchError: if a checkpoint is not of this model or these pairs.
        NonFiniteError: if too many steps in a row were not finite.
        TrainingInterrupted: if a signal came.
    """
    fit = _StageFit(model, recipe, loss or recipe.loss, callbacks, report_dir)
    if checkpoints is None:
        position = RunPosition()
        for stage in recipe.stages:
            position = fit.run(stage, pairs_of(stage.pairs), position)
        return position.history
    position = checkpoints.position
    with checkpoints.signals:
        checkpoints.restore_run(model, callbacks)
        for stage in recipe.stages[position.stage :]:
            pairs = pairs_of(stage.pairs)
            position = fit.run(stage, pairs, position, checkpoints)
    return position.history


@dataclasses.dataclass(frozen=True)
class _StageFit:
    model: DualEncoder
    recipe: Recipe
    loss: LossRecipe
    callbacks: Sequence[keras.callbacks.Callback]
    report_dir: Path | None

    def run(
        self,
        stage: StageRecipe,
        pairs: Sequence[Pair],
        start: RunPosition,
        checkpoints: RunCheckpoints | None = None,
    ) -> RunPosition:
        """Trains what is left of a stage; returns the position after it."""
        compile_model(self.model, self.recipe, stage, self.loss)
        callbacks = StageCallbacks(
            stage,
            self.recipe.training,
            pairs,
            self.callbacks,
            steps_before=start.steps_before(self.recipe),
            first_step=start.step,
            tokens_per_step=self._tokens_per_step(stage, pairs),
        )
        last: list[keras.callbacks.Callback] = []
        if checkpoints is not None:
            last = [checkpoints.begin_stage(self.model, pairs, callbacks)]
        _LOGGER.info(
            "%s: %d pairs, %d steps of %d",
            stage.name,
            len(pairs),
            stage.steps,
            stage.batch_size,
        )
        started = time.monotonic() - start.seconds
        dataset = build_dataset(
            self.model,
            pairs,
            stage,
            self.recipe.seed,
            training=self.recipe.training,
            start_step=start.step,
        )
        try:
            fitted = self.model.fit(
                dataset,
                epochs=1,
                steps_per_epoch=stage.steps - start.step,
                verbose=0,
                callbacks=callbacks.in_order(*last),
            )
        except NonFiniteError as error:
            if self.report_dir is None:
                raise
            raise with_report(
                error, self.recipe, stage, pairs, self.report_dir
            ) from error
        record = {
            "stage": stage.name,
            "pairs": len(pairs),
            "seconds": round(time.monotonic() - started, 1),
            **{k: float(v[-1]) for k, v in fitted.history.items()},
            **callbacks.record(),
        }
        end = start.after_stage(record)
        if checkpoints is not None:
            checkpoints.end_stage(self.model, end, callbacks)
        return end

    def _tokens_per_step(
        self, stage: StageRecipe, pairs: Sequence[Pair]
    ) -> float:
        """Returns the tokens of a batch without padding, on average."""
        sides = (
            ([pair.query for pair in pairs], self.model.query_preprocessor),
            (
                [pair.document for pair in pairs],
                self.model.document_preprocessor,
            ),
        )
        lengths = [
            TokenStatistics.of_texts(texts, preprocessor).mean_kept
            for texts, preprocessor in sides
        ]
        return stage.batch_size * sum(lengths)
