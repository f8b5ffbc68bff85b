"""One line of progress every few seconds."""

import logging
import time

import keras

Logs = dict[str, float] | None

_LOGGER = logging.getLogger("tf_samtone")


class ProgressLines(keras.callbacks.Callback):
    """Logs step, loss, in-batch metrics, speed and time left.

    Lines, not a bar: they stay readable in a log file.

    Args:
        name: str. What the lines start with.
        total_steps: int.
        pairs_per_step: int.
        interval_s: float. Seconds between lines. Defaults to `15.0`.
    """

    def __init__(
        self,
        name: str,
        total_steps: int,
        pairs_per_step: int,
        interval_s: float = 15.0,
    ) -> None:
        super().__init__()
        self.name = name
        self.total_steps = total_steps
        self.pairs_per_step = pairs_per_step
        self.interval_s = interval_s
        self._started = self._last_line = 0.0
        self._first_step_s = 0.0

    def on_train_begin(self, logs: Logs = None) -> None:
        self._started = self._last_line = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        now = time.monotonic()
        step = batch + 1
        if step == 1:
            # Tracing is not speed: it would spoil the time left.
            self._first_step_s = now - self._started
        is_last = step == self.total_steps
        if not is_last and step > 1 and now - self._last_line < self.interval_s:
            return
        self._last_line = now
        figures = " ".join(f"{k} {v:.4f}" for k, v in (logs or {}).items())
        message = f"{self.name}: step {step}/{self.total_steps} {figures}"
        if step > 1:
            step_s = (now - self._started - self._first_step_s) / (step - 1)
            message += (
                f" | {self.pairs_per_step / step_s:.0f} pairs/s, "
                f"{(self.total_steps - step) * step_s:.0f} s left"
            )
        _LOGGER.info(message)
