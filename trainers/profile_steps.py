"""A profile of some training steps."""

import logging
import os

import keras
import tensorflow as tf

from tf_samtone.errors import InvalidInputError

_LOGGER = logging.getLogger("tf_samtone")


class ProfileSteps(keras.callbacks.Callback):
    """Traces some steps with TensorFlow's profiler.

    Writes `plugins/profile/<time>/*.xplane.pb` below the folder, to be opened
    with TensorBoard's profile plugin (`pip install tensorboard-plugin-profile`)
    or Perfetto. The steps before `first` are left out, since tracing and
    compilation would hide everything else.

    Args:
        directory: folder.
        first: int, at least 1. The first step of this fit to be traced.
            Defaults to `5`.
        count: int, at least 1. Steps to trace. Defaults to `5`.

    Raises:
        InvalidInputError: if `first` or `count` is not positive.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        first: int = 5,
        count: int = 5,
    ) -> None:
        super().__init__()
        for name, value in (("first", first), ("count", count)):
            if value < 1:
                raise InvalidInputError(
                    f"Expected `{name}` to be at least 1. Received: "
                    f"{name}={value}. Steps are counted from 1."
                )
        self.directory = os.fspath(directory)
        self.first = first
        self.count = count
        self._is_running = False
        self._is_done = False

    def on_train_batch_begin(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        if batch + 1 >= self.first and not self._is_running | self._is_done:
            tf.profiler.experimental.start(self.directory)
            self._is_running = True

    def on_train_batch_end(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        if batch + 1 >= self.first + self.count - 1:
            self._stop()

    def on_train_end(self, logs: dict[str, float] | None = None) -> None:
        self._stop()
        if not self._is_done:
            _LOGGER.warning(
                "No profile was written: this fit ended before its step %d.",
                self.first,
            )

    def _stop(self) -> None:
        if not self._is_running:
            return
        tf.profiler.experimental.stop()
        self._is_running, self._is_done = False, True
        _LOGGER.info(
            "profile of up to %d steps written to %s",
            self.count,
            self.directory,
        )
