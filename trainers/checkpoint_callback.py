"""Checkpoints while `fit` runs."""

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np

from tf_samtone.errors import TrainingInterrupted
from tf_samtone.trainers.stop_signals import StopSignals
from tf_samtone.trainers.training_variables import (
    METRICS,
    assign_variables,
    training_variables,
)

Logs = dict[str, float] | None


class CheckpointCallback(keras.callbacks.Callback):
    """Saves every so many steps, and before a signal stops the run.

    Works between two steps, when every variable is at rest. Give it to `fit`
    after all callbacks whose state is saved. The last step of a stage is left
    to whoever called `fit`, since the stage's figures belong to it.

    Args:
        save: function from the steps done in this stage to the folder of the
            checkpoint that it wrote.
        every_steps: int, at least 1.
        total_steps: int. Steps of the stage.
        first_step: int. Steps done before this fit. Defaults to `0`.
        signals: `StopSignals` or `None`. Defaults to `None`.
        metrics: tensors of the running means to go on from, by the names of
            `training_variables`. Defaults to `None`: they start anew.

    Raises:
        TrainingInterrupted: from `fit`, when a signal came and the checkpoint
            was written.
    """

    def __init__(
        self,
        save: Callable[[int], Path],
        *,
        every_steps: int,
        total_steps: int,
        first_step: int = 0,
        signals: StopSignals | None = None,
        metrics: dict[str, np.ndarray] | None = None,
    ) -> None:
        super().__init__()
        self.save = save
        self.every_steps = every_steps
        self.total_steps = total_steps
        self.first_step = first_step
        self.signals = signals
        self._metrics = metrics
        self._last_step = first_step

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        # Keras has reset the metrics just before this call.
        if self._metrics is not None:
            variables = training_variables(self.model, METRICS)
            assign_variables(variables, self._metrics)
            self._metrics = None

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        step = self.first_step + batch + 1
        # Not `step % every_steps`: with several steps per execution Keras
        # calls this for the last of them only.
        every = self.every_steps
        is_due = step // every > self._last_step // every
        self._last_step = step
        if step >= self.total_steps or self.model.stop_training:
            return
        if self.signals is not None and self.signals.received:
            raise interrupted(self.signals.received, self.save(step))
        if is_due:
            self.save(step)


def interrupted(signal_name: str, checkpoint: Path) -> TrainingInterrupted:
    """Makes the error that ends a run after a signal."""
    return TrainingInterrupted(
        f"Expected to train to the end. Received: {signal_name}. Everything is "
        f"saved in {checkpoint}; resume to go on from there (--resume)."
    )
