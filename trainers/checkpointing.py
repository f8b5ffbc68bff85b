"""The checkpoints of one run through all stages of a recipe."""

import dataclasses
import hashlib
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tf_samtone.data import Pair
from tf_samtone.errors import MismatchError
from tf_samtone.text import fingerprint
from tf_samtone.trainers.checkpoint_callback import (
    CheckpointCallback,
    interrupted,
)
from tf_samtone.trainers.checkpoint_store import Checkpoint, CheckpointStore
from tf_samtone.trainers.recipe import LossRecipe, Recipe
from tf_samtone.trainers.run_position import RunPosition
from tf_samtone.trainers.stage_callbacks import StageCallbacks
from tf_samtone.trainers.stop_signals import StopSignals
from tf_samtone.trainers.training_variables import (
    METRICS,
    OPTIMIZER,
    WEIGHTS,
    assign_variables,
    check_finite,
    check_variables,
    read_variables,
    training_variables,
)

__all__ = ["RunCheckpoints", "pairs_digest"]

Tensors = dict[str, np.ndarray]

_LOGGER = logging.getLogger("tf_samtone")


class RunCheckpoints:
    """Saves and restores the complete state of a run, between two steps.

    That is: weights, optimizer, learned temperature, counters of the steps,
    state of random layers, running means, position, history of finished
    stages, state of callbacks, and the recipe. The data need no state: their
    order is a function of seed, epoch and step. A run that was killed, or
    stopped by a signal, and resumed on the same number of devices and threads
    ends with the same bits as one that was not. On another number of devices
    it goes on with the same batches, equal up to rounding.

    Args:
        directory: folder of the checkpoints.
        recipe: `Recipe`.
        loss: `LossRecipe` that is trained, the recipe's own or another one.
        resume: bool. Goes on from the newest intact checkpoint, if there is
            one. Defaults to `False`.

    Attributes:
        position: `RunPosition` to go on from.
        signals: `StopSignals`. Enter it for as long as signals should wait
            for a checkpoint.

    Raises:
        CorruptFileError: if there are checkpoints, none of them intact.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        recipe: Recipe,
        loss: LossRecipe,
        *,
        resume: bool = False,
    ) -> None:
        self.recipe = recipe
        self.loss = loss
        self.signals = StopSignals()
        self.store = CheckpointStore(
            directory, keep=recipe.training.keep_checkpoints
        )
        self.store.recover()
        self._restored = self.store.latest() if resume else None
        self.position = RunPosition()
        if self._restored is not None:
            state = self._restored.state
            if state["loss"] != dataclasses.asdict(loss):
                raise MismatchError(
                    f"Expected checkpoints of the loss {loss!r}. Received: "
                    f"{self._restored.path} of {state['loss']}. Restore the "
                    "folder, or train into another one."
                )
            self.position = RunPosition(**state["position"])
            _LOGGER.info("resuming from %s", self._restored.path)

    def restore_run(
        self, model: Any, callbacks: Sequence[keras.callbacks.Callback]
    ) -> None:
        """Sets what lives through all stages.

        Args:
            model: `DualEncoder`; need not be compiled.
            callbacks: those with a `restore` method are given what their
                `state` method returned, in this order.

        Raises:
            MismatchError: if the weights are of another architecture.
        """
        if self._restored is not None:
            _assign(model, self._restored, WEIGHTS)
            _restore_callbacks(callbacks, self._restored)

    def begin_stage(
        self, model: Any, pairs: Sequence[Pair], callbacks: StageCallbacks
    ) -> CheckpointCallback:
        """Sets what is of this stage, and makes the callback that saves.

        Args:
            model: `DualEncoder`, compiled for the stage.
            pairs: list of `Pair` of the stage.
            callbacks: `StageCallbacks`; take part in every checkpoint.

        Returns:
            `CheckpointCallback`, to be the last callback of `fit`.

        Raises:
            MismatchError: if the state is of another optimizer or loss, or
                the pairs have changed.
        """
        start = dataclasses.replace(self.position, pairs=pairs_digest(pairs))
        metrics = self._restore_stage(model, start.pairs, callbacks)
        started = time.monotonic() - start.seconds

        def save(step: int) -> Path:
            seconds = time.monotonic() - started
            position = dataclasses.replace(start, step=step, seconds=seconds)
            metric = callbacks.best_metric_at(step)
            return self._save(model, position, callbacks, metric)

        return CheckpointCallback(
            save,
            every_steps=self.recipe.training.checkpoint_every,
            total_steps=self.recipe.stages[start.stage].steps,
            first_step=start.step,
            signals=self.signals,
            metrics=metrics,
        )

    def end_stage(
        self, model: Any, position: RunPosition, callbacks: StageCallbacks
    ) -> None:
        """Saves the end of a stage.

        Args:
            model: `DualEncoder`.
            position: `RunPosition` after the stage.
            callbacks: `StageCallbacks` of the stage.

        Raises:
            TrainingInterrupted: if a signal came during the last step.
        """
        stage = self.recipe.stages[self.position.stage]
        metric = callbacks.best_metric_at(stage.steps)
        path = self._save(model, position, callbacks, metric)
        self.position = position
        if self.signals.received:
            raise interrupted(self.signals.received, path)

    def _restore_stage(
        self, model: Any, pairs: str, callbacks: StageCallbacks
    ) -> Tensors | None:
        """Returns the running means, to be set when Keras has reset them."""
        # Once; and its memory is free again when it is done.
        restored, self._restored = self._restored, None
        if restored is None or not self.position.step:
            return None
        if pairs != self.position.pairs:
            raise MismatchError(
                "Expected the training pairs with which the run was started. "
                f"Received: other ones than in {restored.path}. Restore the "
                "data, or train into another folder."
            )
        _assign(model, restored, OPTIMIZER)
        _restore_callbacks(callbacks.of_stage, restored)
        metrics = _of_groups(restored, METRICS)
        check_variables(
            training_variables(model, METRICS), metrics, restored.path
        )
        return metrics

    def _save(
        self,
        model: Any,
        position: RunPosition,
        callbacks: StageCallbacks,
        metric: float | None,
    ) -> Path:
        tensors = read_variables(training_variables(model))
        check_finite(tensors)
        state = {
            "loss": dataclasses.asdict(self.loss),
            "position": dataclasses.asdict(position),
            "callbacks": {
                type(callback).__name__: callback.state()
                for callback in [*callbacks.of_run, *callbacks.of_stage]
                if hasattr(callback, "state")
            },
            "recipe": self.recipe.to_dict(),
        }
        step = position.steps_before(self.recipe) + position.step
        return self.store.save(step, tensors, state, metric=metric)


def pairs_digest(pairs: Sequence[Pair]) -> str:
    """Returns 64 hex digits that identify training pairs and their order."""
    digest = hashlib.sha256()
    for texts in ([p.query for p in pairs], [p.document for p in pairs]):
        digest.update(fingerprint(texts).tobytes())
    return digest.hexdigest()


def _assign(model: Any, checkpoint: Checkpoint, groups: Sequence[str]) -> None:
    variables = training_variables(model, groups)
    tensors = _of_groups(checkpoint, groups)
    check_variables(variables, tensors, checkpoint.path)
    assign_variables(variables, tensors)


def _restore_callbacks(
    callbacks: Sequence[keras.callbacks.Callback], checkpoint: Checkpoint
) -> None:
    states = checkpoint.state["callbacks"]
    for callback in callbacks:
        name = type(callback).__name__
        if hasattr(callback, "restore") and name in states:
            callback.restore(states[name])


def _of_groups(checkpoint: Checkpoint, groups: Sequence[str]) -> Tensors:
    return {
        name: tensor
        for name, tensor in checkpoint.tensors.items()
        if name.partition("/")[0] in groups
    }
