"""Scalars of a run for TensorBoard, by step."""

import os
import time
from typing import Any

import keras
import numpy as np

from tf_samtone.errors import InvalidInputError, MissingDependencyError
from tf_samtone.trainers.progress_lines import skipped_steps

Logs = dict[str, float] | None


class TensorBoardScalars(keras.callbacks.Callback):
    """Writes whatever is in the logs, and the learning rate, by global step.

    Loss, in-batch metrics and diagnostics are written every `every_steps`
    steps and at the last one; `val_*` at each step that has a validation. The
    learning rate is the one with which that step was made, `gradient_norm`
    the global norm before clipping. `skipped_steps` counts the steps with
    gradients that were not finite. Unlike `keras.callbacks.TensorBoard`, whose
    axis is the optimizer's own counter or the epoch, the axis is `first_step`
    plus the steps of this fit, through all stages.

    A resumed run writes a new file that first says from which step on older
    files are void (a `SessionLog.START`, as `purge_step` did in TensorFlow 1),
    so TensorBoard shows no step twice: not those either that the killed run
    made after its last checkpoint.

    Args:
        directory: folder for `tensorboard --logdir`.
        every_steps: int, at least 1. Defaults to `10`.
        first_step: int. Steps done before this fit. Defaults to `0`.

    Raises:
        InvalidInputError: if `every_steps` is not positive.
        MissingDependencyError: if TensorBoard is not installed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        every_steps: int = 10,
        *,
        first_step: int = 0,
    ) -> None:
        super().__init__()
        if every_steps < 1:
            raise InvalidInputError(
                "Expected `every_steps` to be at least 1. Received: "
                f"every_steps={every_steps}. Leave the callback out for none."
            )
        _event_classes()
        self.directory = os.fspath(directory)
        self.every_steps = every_steps
        self.first_step = first_step
        self._writer: Any = None
        self._rate = 0.0
        self._last_step = first_step
        self._unwritten: dict[str, float] = {}

    def on_train_begin(self, logs: Logs = None) -> None:
        event_pb2, event_file_writer = _event_classes()
        self._last_step = self.first_step
        self._unwritten = {}
        self._writer = event_file_writer.EventFileWriter(self.directory)
        self._writer.add_event(
            event_pb2.Event(
                wall_time=time.time(),
                step=self.first_step + 1,
                session_log=event_pb2.SessionLog(
                    status=event_pb2.SessionLog.START
                ),
            )
        )

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        # Before the step: afterwards a schedule tells the next step's rate.
        self._rate = float(np.asarray(self.model.optimizer.learning_rate))

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        step = self.first_step + batch + 1
        logs = dict(logs or {})
        validation = {k: v for k, v in logs.items() if k.startswith("val_")}
        scalars = {k: v for k, v in logs.items() if k not in validation}
        scalars["learning_rate"] = self._rate
        state = getattr(self.model, "training_state", None)
        if state is not None:
            scalars["skipped_steps"] = float(skipped_steps(self.model))
            scalars["gradient_norm"] = float(state.gradient_norm.numpy())
        is_due = step // self.every_steps > self._last_step // self.every_steps
        self._last_step = step
        self._write(step, {**(scalars if is_due else {}), **validation})
        self._unwritten = {} if is_due else scalars

    def on_train_end(self, logs: Logs = None) -> None:
        self._write(self._last_step, self._unwritten)
        self._writer.close()

    def _write(self, step: int, scalars: dict[str, float]) -> None:
        if not scalars:
            return
        from tensorboard.compat.proto import summary_pb2

        event_pb2, _ = _event_classes()
        values = [
            summary_pb2.Summary.Value(tag=name, simple_value=value)
            for name, value in scalars.items()
        ]
        self._writer.add_event(
            event_pb2.Event(
                wall_time=time.time(),
                step=step,
                summary=summary_pb2.Summary(value=values),
            )
        )
        # The figures before a crash are those that are wanted most.
        self._writer.flush()


def _event_classes() -> tuple[Any, Any]:
    """Imports TensorBoard's writer of event files.

    Not `tf.summary`: it cannot write the mark of a restart, and its ops have
    to be kept off the devices of a strategy.
    """
    try:
        from tensorboard.compat.proto import event_pb2
        from tensorboard.summary.writer import event_file_writer
    except ImportError as error:
        raise MissingDependencyError(
            "Expected the package tensorboard, which TensorFlow brings. "
            f"Received: {error}. Install tensorboard, or switch the option "
            "tensorboard off."
        ) from error
    return event_pb2, event_file_writer
