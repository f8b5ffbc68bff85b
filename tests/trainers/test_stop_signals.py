"""Tests of noting signals."""

import os
import signal
import threading

import pytest

from tf_samtone.trainers.stop_signals import StopSignals

BOTH = pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"]
)


@pytest.fixture
def previous():
    """Replaces both handlers by one that counts."""
    calls = []

    def count(number, frame):
        calls.append(number)

    numbers = (signal.SIGTERM, signal.SIGINT)
    kept = {number: signal.signal(number, count) for number in numbers}
    yield calls
    for number, handler in kept.items():
        signal.signal(number, handler)


@BOTH
def test_the_first_signal_is_noted_and_not_obeyed(previous, number):
    with StopSignals() as signals:
        assert signals.received is None
        os.kill(os.getpid(), number)
        assert signals.received == number.name

    assert previous == []


@BOTH
def test_a_second_signal_is_obeyed(previous, number):
    with StopSignals():
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), number)

    assert previous == [number]


def test_the_handlers_of_before_are_back_afterwards(previous):
    with StopSignals():
        pass
    os.kill(os.getpid(), signal.SIGTERM)

    assert previous == [signal.SIGTERM]


def test_they_are_back_after_an_error_too(previous):
    with pytest.raises(RuntimeError), StopSignals():
        raise RuntimeError
    os.kill(os.getpid(), signal.SIGINT)

    assert previous == [signal.SIGINT]


def test_an_ignored_signal_stays_ignored(previous):
    # As under nohup, or in the background of a shell script.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with StopSignals() as signals:
        os.kill(os.getpid(), signal.SIGINT)

    assert signals.received is None


def test_another_thread_sets_no_handlers():
    before = signal.getsignal(signal.SIGTERM)
    seen = []

    def work():
        with StopSignals() as signals:
            seen.append((signal.getsignal(signal.SIGTERM), signals.received))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    # Python allows it in the main thread only, and would raise.
    assert seen == [(before, None)]
