"""Tests of the progress lines."""

import logging
import types

import keras
import pytest

from tf_samtone.trainers import ProgressLines
from tf_samtone.trainers.progress_lines import format_duration


class _Clock:
    """Stands in for `time.monotonic`; moves when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = _Clock()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


def _messages(caplog, clock, progress, steps=3, step_s=2.0, pause_s=0.0):
    with caplog.at_level(logging.INFO, logger="tf_samtone"):
        progress.on_train_begin()
        for batch in range(steps):
            progress.on_train_batch_begin(batch)
            clock.now += step_s
            progress.on_train_batch_end(batch, {"loss": 2.0})
            clock.now += pause_s
    return [record.message for record in caplog.records]


def test_first_and_last_step_are_always_shown(caplog, clock):
    progress = ProgressLines("stage", 3, 8, interval_s=1e9)
    messages = _messages(caplog, clock, progress)
    assert [m.split(" | ")[0] for m in messages] == [
        "stage: step 1/3 loss 2.0000",
        "stage: step 3/3 loss 2.0000",
    ]


def test_the_last_line_has_nothing_left(caplog, clock):
    progress = ProgressLines("stage", 3, 8, interval_s=0.0)
    assert _messages(caplog, clock, progress)[-1].endswith(" 0 s left")


def test_speed_is_in_pairs_and_tokens(caplog, clock):
    # 8 pairs and 5000 tokens in steps of 2 s.
    progress = ProgressLines("stage", 4, 8, 0.0, tokens_per_step=5000.0)
    line = _messages(caplog, clock, progress)[-1]
    assert line.endswith(" | 4 pairs/s, 2,500 tokens/s, 2 s left")


def test_time_between_steps_counts_for_time_left_but_not_for_speed(
    caplog, clock
):
    progress = ProgressLines("stage", 13, 8, interval_s=0.0)
    line = _messages(caplog, clock, progress, pause_s=3.0)[-1]
    # Ten steps are left, of 2 s each and 3 s of something else.
    assert line.endswith(" | 4 pairs/s, 50 s left")


def test_a_resumed_fit_goes_on_counting(caplog, clock):
    progress = ProgressLines("stage", 60, 8, interval_s=0.0, first_step=50)
    messages = _messages(caplog, clock, progress)
    assert messages[0] == "stage: step 51/60 loss 2.0000"
    assert messages[-1].startswith("stage: step 53/60")
    assert messages[-1].endswith("14 s left")


def test_skipped_steps_are_shown(caplog, clock):
    progress = ProgressLines("stage", 3, 8, interval_s=0.0)
    model = types.SimpleNamespace(
        training_state=types.SimpleNamespace(
            skipped_steps=keras.Variable(2, dtype="int64", trainable=False)
        )
    )
    progress.set_model(model)
    assert "| 2 steps skipped, " in _messages(caplog, clock, progress)[-1]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(59.6, "60 s"), (600.0, "10 min"), (9000.0, "2.5 h")],
    ids=["seconds", "minutes", "hours"],
)
def test_durations_are_readable(seconds, text):
    assert format_duration(seconds) == text
