"""One line of progress every few seconds."""

import logging
import time
from typing import Any

import keras

Logs = dict[str, float] | None

_LOGGER = logging.getLogger("tf_samtone")


class ProgressLines(keras.callbacks.Callback):
    """Logs step, loss, in-batch metrics, speed and time left.

    Lines, not a bar: they stay readable in a log file. For example:

        train: step 120/360 loss 1.2345 | 58 pairs/s, 4,310 tokens/s, 4 min left

    Speeds count the time of the training steps and their input alone, so that
    a validation or a checkpoint does not look like a slow step; the time left
    counts everything. Steps that the model skipped (gradients that were not
    finite) are shown as soon as there is one. Give it to `fit` before the
    callbacks that work at the end of a step.

    Args:
        name: str. What the lines start with.
        total_steps: int. Steps of the whole run, with those before
            `first_step`.
        pairs_per_step: int.
        interval_s: float. Seconds between lines. Defaults to `15.0`.
        tokens_per_step: float or `None`. Tokens of one batch without padding,
            on average; see `TokenStatistics`. Defaults to `None`, no tokens/s.
        first_step: int. Steps done before this fit. Defaults to `0`.
    """

    def __init__(
        self,
        name: str,
        total_steps: int,
        pairs_per_step: int,
        interval_s: float = 15.0,
        *,
        tokens_per_step: float | None = None,
        first_step: int = 0,
    ) -> None:
        super().__init__()
        self.name = name
        self.total_steps = total_steps
        self.pairs_per_step = pairs_per_step
        self.interval_s = interval_s
        self.tokens_per_step = tokens_per_step
        self.first_step = first_step
        self._batch_started = self._last_line = self._first_ended = 0.0
        self._busy_s = 0.0
        self._first_batch_end: int | None = None

    def on_train_begin(self, logs: Logs = None) -> None:
        self._busy_s = 0.0
        self._first_batch_end = None

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        self._batch_started = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        now = time.monotonic()
        step = self.first_step + batch + 1
        is_first = self._first_batch_end is None
        if is_first:
            # Tracing is not speed: it would spoil the time left.
            self._first_batch_end, self._first_ended = batch, now
        else:
            self._busy_s += now - self._batch_started
        is_last = step >= self.total_steps
        is_due = now - self._last_line >= self.interval_s
        if not (is_first or is_last or is_due):
            return
        self._last_line = now
        figures = "".join(f" {k} {v:.4f}" for k, v in (logs or {}).items())
        parts = self._skipped() + self._speed(batch, step, now)
        _LOGGER.info(
            "%s: step %d/%d%s%s",
            self.name,
            step,
            self.total_steps,
            figures,
            " | " + ", ".join(parts) if parts else "",
        )

    def _skipped(self) -> list[str]:
        skipped = skipped_steps(self.model)
        return [f"{skipped} steps skipped"] if skipped else []

    def _speed(self, batch: int, step: int, now: float) -> list[str]:
        """Returns pairs/s, tokens/s and time left, once they are known."""
        done = batch - (self._first_batch_end or 0)
        if not done:
            return []
        steps_per_s = done / max(self._busy_s, 1e-9)
        parts = [f"{self.pairs_per_step * steps_per_s:,.0f} pairs/s"]
        if self.tokens_per_step is not None:
            parts.append(f"{self.tokens_per_step * steps_per_s:,.0f} tokens/s")
        left_s = (now - self._first_ended) / done * (self.total_steps - step)
        return [*parts, f"{format_duration(max(left_s, 0.0))} left"]


def skipped_steps(model: Any) -> int:
    """Returns how many steps a model has skipped; 0 if it does not count."""
    state = getattr(model, "training_state", None)
    return 0 if state is None else int(state.skipped_steps.numpy())


def format_duration(seconds: float) -> str:
    """Returns a duration as seconds, minutes or hours, as is readable."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
