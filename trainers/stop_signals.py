"""SIGTERM and SIGINT as a wish to stop soon."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class StopSignals:
    """Notes the first SIGTERM or SIGINT instead of stopping at once.

    A context manager. After the first signal, and when the context ends, the
    handlers of before are back, so a second signal does what it always did.
    Signals that are ignored (as under `nohup`) stay so. Only the main thread
    may set handlers; in another one nothing is noted.

    >>> import os
    >>> with StopSignals() as signals:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    ...     signals.received
    'SIGTERM'

    Attributes:
        received: str or `None`. The name of the signal that came.
    """

    def __init__(self) -> None:
        self.received: str | None = None
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            # None is a handler that was not set from Python, which could not
            # be put back.
            if previous not in (signal.SIG_IGN, None):
                self._previous[number] = previous
                signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._restore()

    def _note(self, number: int, frame: FrameType | None) -> None:
        # Nothing is logged here: the signal may have come while the log was
        # being written.
        self.received = signal.Signals(number).name
        self._restore()

    def _restore(self) -> None:
        while self._previous:
            signal.signal(*self._previous.popitem())
