"""Tests of the progress lines."""

import logging

from tf_samtone.trainers import ProgressLines


def _messages(caplog, interval_s):
    progress = ProgressLines("stage", 3, 8, interval_s=interval_s)
    with caplog.at_level(logging.INFO, logger="tf_samtone"):
        progress.on_train_begin()
        for step in range(3):
            progress.on_train_batch_end(step, {"loss": 2.0})
    return [record.message for record in caplog.records]


def test_first_and_last_step_are_always_shown(caplog):
    messages = _messages(caplog, interval_s=1e9)
    assert [m.split(" | ")[0] for m in messages] == [
        "stage: step 1/3 loss 2.0000",
        "stage: step 3/3 loss 2.0000",
    ]


def test_the_last_line_has_nothing_left(caplog):
    assert _messages(caplog, interval_s=0.0)[-1].endswith(" 0 s left")
