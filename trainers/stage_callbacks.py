"""The callbacks of one stage, in the order in which they have to work."""

from collections.abc import Sequence
from typing import Any

import keras

from tf_samtone.data import Pair
from tf_samtone.trainers.collapse_guard import CollapseGuard
from tf_samtone.trainers.early_stopping import EarlyStopping
from tf_samtone.trainers.progress_lines import ProgressLines
from tf_samtone.trainers.recipe import StageRecipe
from tf_samtone.trainers.retrieval_validation import RetrievalValidation
from tf_samtone.trainers.training_recipe import TrainingRecipe


class StageCallbacks:
    """Progress, guard, the callbacks of the run, and early stopping.

    Args:
        stage: `StageRecipe`.
        training: `TrainingRecipe`.
        pairs: list of `Pair` of the stage.
        run_callbacks: Keras callbacks that live through all stages. An
            attribute `first_step` is set to the steps done through all stages.
        steps_before: int. Steps of the stages before.
        first_step: int. Steps of this stage that are done. Defaults to `0`.
        tokens_per_step: float or `None`. See `ProgressLines`. Defaults to
            `None`.
    """

    def __init__(
        self,
        stage: StageRecipe,
        training: TrainingRecipe,
        pairs: Sequence[Pair],
        run_callbacks: Sequence[keras.callbacks.Callback],
        *,
        steps_before: int,
        first_step: int = 0,
        tokens_per_step: float | None = None,
    ) -> None:
        self._stage = stage
        self._metric = training.best_metric
        self._steps_before = steps_before
        documents = [pair.document for pair in pairs]
        self._first = [
            ProgressLines(
                stage.name,
                stage.steps,
                stage.batch_size,
                tokens_per_step=tokens_per_step,
                first_step=first_step,
            ),
            CollapseGuard(documents, stage.steps, first_step=first_step),
        ]
        self._run = list(run_callbacks)
        for callback in self._run:
            if hasattr(callback, "first_step"):
                callback.first_step = steps_before + first_step
        self._validation = next(
            (c for c in self._run if isinstance(c, RetrievalValidation)), None
        )
        self._stopping: EarlyStopping | None = None
        if self._validation is not None and training.early_stopping_patience:
            # A new one, since patience counts anew in each stage.
            self._stopping = EarlyStopping(
                self._validation,
                training.best_metric,
                training.early_stopping_patience,
            )

    @property
    def of_run(self) -> list[keras.callbacks.Callback]:
        """Those that live through all stages."""
        return list(self._run)

    @property
    def of_stage(self) -> list[keras.callbacks.Callback]:
        """Those of this stage that have a state of their own."""
        return [] if self._stopping is None else [self._stopping]

    def in_order(
        self, *last: keras.callbacks.Callback
    ) -> list[keras.callbacks.Callback]:
        """Returns the list for `fit`, with `last` at its end."""
        return [*self._first, *self.of_run, *self.of_stage, *last]

    def best_metric_at(self, step: int) -> float | None:
        """Returns the watched metric, if this step of the stage has one."""
        latest = None if self._validation is None else self._validation.latest
        if latest is None or latest[0] != self._steps_before + step:
            return None
        return latest[1].get(self._metric)

    def record(self) -> dict[str, Any]:
        """Returns steps done, and the validations of the stage, for JSON."""
        before, steps = self._steps_before, self._stage.steps
        if self._stopping is not None and self._stopping.stopped_step:
            steps = self._stopping.stopped_step - before
        if self._validation is None:
            return {"steps": steps}
        rows = [
            [step - before, values]
            for step, values in self._validation.history
            if step > before
        ]
        return {"steps": steps, "validations": rows}
