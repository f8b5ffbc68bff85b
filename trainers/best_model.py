"""Keeps the best model of a run by a validation metric."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import keras

from tf_samtone._files import atomic_directory, atomic_write_text
from tf_samtone.errors import OutputExistsError
from tf_samtone.trainers._watched_metric import WatchedMetric
from tf_samtone.trainers.retrieval_validation import RetrievalValidation

_LOGGER = logging.getLogger("tf_samtone")


class BestModel(keras.callbacks.Callback):
    """Saves the model whenever a validation gives a new best value.

    The folder holds `model/`, for `DualEncoder.from_preset`, and `best.json`
    with metric, value and step. Both are replaced in one move, so they always
    belong together, and a killed process leaves the former best one.

    A folder that holds anything else, or the best model of another run, is
    refused before training unless `overwrite` is true. A run that is resumed
    (`restore`) goes on with its own folder.

    Args:
        validation: `RetrievalValidation`; before this one in `callbacks`.
        directory: folder.
        metric: str. One of the validation's. Defaults to `"MRR@10"`.
        overwrite: bool. Replaces what is in the folder. Defaults to `False`.

    Attributes:
        best: float or `None`. The best value so far.
        best_step: int or `None`. Its step.

    Raises:
        InvalidInputError: if the validation does not measure the metric.
        OutputExistsError: from `fit`, if the folder holds other files.
    """

    def __init__(
        self,
        validation: RetrievalValidation,
        directory: str | os.PathLike[str],
        metric: str = "MRR@10",
        *,
        overwrite: bool = False,
    ) -> None:
        super().__init__()
        self.directory = Path(directory)
        self._watched = WatchedMetric(validation, metric)
        self._is_own = overwrite

    @property
    def best(self) -> float | None:
        """The best value so far."""
        return self._watched.best

    @property
    def best_step(self) -> int | None:
        """The step of the best value."""
        return self._watched.best_step

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint must hold, for JSON."""
        return self._watched.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` returned.

        If the folder has gone meanwhile, the next validation counts as the
        best one, so that the run still ends with a model.
        """
        self._watched.restore(state)
        self._is_own = True
        if (
            self.best is not None
            and not (self.directory / "best.json").exists()
        ):
            _LOGGER.warning(
                "The best model of step %s is no longer in %s; looking for the "
                "best one anew.",
                self.best_step,
                self.directory,
            )
            self._watched.restore({**state, "best": None, "best_step": None})

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._watched.begin()
        if self._is_own or not self.directory.exists():
            return
        if not self.directory.is_dir() or any(self.directory.iterdir()):
            raise OutputExistsError(
                "Expected a new or empty folder for the best model. Received: "
                f"{self.directory}, which already holds files. Choose another "
                "folder, resume the run that wrote it, or pass overwrite=True."
            )

    def on_train_batch_end(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        found = self._watched.new_value(logs)
        if found is None or not self._watched.improves(*found):
            return
        step, value = found
        record = {"metric": self._watched.metric, "value": value, "step": step}
        with atomic_directory(self.directory, overwrite=self._is_own) as folder:
            self.model.save_to_preset(folder / "model")
            atomic_write_text(
                folder / "best.json", json.dumps(record, indent=2) + "\n"
            )
        self._is_own = True
        _LOGGER.info(
            "best model so far: %s %.4f after step %d, saved in %s",
            self._watched.metric,
            value,
            step,
            self.directory,
        )
