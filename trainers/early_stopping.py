"""Stops a run whose validation no longer improves."""

import logging
from typing import Any

import keras

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers._watched_metric import WatchedMetric
from tf_samtone.trainers.retrieval_validation import RetrievalValidation

_LOGGER = logging.getLogger("tf_samtone")


class EarlyStopping(keras.callbacks.Callback):
    """Stops the fit after some validations in a row without a better value.

    Unlike `keras.callbacks.EarlyStopping`, which looks at the ends of epochs,
    it stops right after the step whose validation was one too many (Keras
    reads `stop_training` after every step). The weights stay those of that
    step; see `BestModel` for the best ones.

    Args:
        validation: `RetrievalValidation`; before this one in `callbacks`.
        metric: str. One of the validation's. Defaults to `"MRR@10"`.
        patience: int, at least 1. Validations without improvement that end
            the run. Defaults to `5`.
        min_delta: float >= 0. Smallest improvement that counts. Defaults to
            `0.0`.

    Attributes:
        stopped_step: int or `None`. The step at which it stopped. A resumed
            run must not be fitted any more if this is set.

    Raises:
        InvalidInputError: if an option cannot be used.
    """

    def __init__(
        self,
        validation: RetrievalValidation,
        metric: str = "MRR@10",
        patience: int = 5,
        *,
        min_delta: float = 0.0,
    ) -> None:
        super().__init__()
        if patience < 1:
            raise InvalidInputError(
                "Expected `patience` to be at least 1. Received: "
                f"patience={patience}. Leave the callback out for none."
            )
        self.patience = patience
        self.stopped_step: int | None = None
        self._watched = WatchedMetric(validation, metric, min_delta)
        self._stale = 0

    def state(self) -> dict[str, Any]:
        """Returns what a checkpoint must hold, for JSON."""
        return {
            **self._watched.state(),
            "stale": self._stale,
            "stopped_step": self.stopped_step,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Takes back what `state` returned."""
        self._watched.restore(state)
        self._stale = state["stale"]
        self.stopped_step = state["stopped_step"]

    def on_train_begin(self, logs: dict[str, float] | None = None) -> None:
        self._watched.begin()

    def on_train_batch_end(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        found = self._watched.new_value(logs)
        if found is None:
            return
        if self._watched.improves(*found):
            self._stale = 0
            return
        self._stale += 1
        if self._stale < self.patience:
            return
        self.stopped_step = found[0]
        self.model.stop_training = True
        _LOGGER.info(
            "stopped after step %d: no better %s than %.4f of step %s in %d "
            "validations",
            self.stopped_step,
            self._watched.metric,
            self._watched.best,
            self._watched.best_step,
            self._stale,
        )
