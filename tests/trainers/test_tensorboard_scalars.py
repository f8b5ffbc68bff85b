"""Tests of the scalars for TensorBoard, read back with TensorBoard."""

import types

import keras
import pytest
from tensorboard.backend.event_processing import event_accumulator

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers.tensorboard_scalars import TensorBoardScalars


class _Model:
    """Has a learning rate that is a tenth of the next step's number."""

    def __init__(self):
        self.next_step = 1
        self.training_state = types.SimpleNamespace(
            skipped_steps=keras.Variable(0, dtype="int64", trainable=False),
            gradient_norm=keras.Variable(2.5, trainable=False),
        )

    @property
    def optimizer(self):
        return types.SimpleNamespace(learning_rate=self.next_step / 10)


def _fit(folder, losses, first_step=0, every_steps=1, ends=True, extra=None):
    callback = TensorBoardScalars(folder, every_steps, first_step=first_step)
    model = _Model()
    callback.set_model(model)
    callback.on_train_begin()
    for batch, loss in enumerate(losses):
        step = first_step + batch + 1
        model.next_step = step
        callback.on_train_batch_begin(batch)
        # The step itself moves a schedule on.
        model.next_step = step + 1
        if step == 2:
            model.training_state.skipped_steps.assign(1)
        logs = {"loss": loss, **(extra or {}).get(step, {})}
        callback.on_train_batch_end(batch, logs)
    if ends:
        callback.on_train_end()


def _read(folder):
    """Returns {tag: {step: value}} as TensorBoard shows it."""
    events = event_accumulator.EventAccumulator(str(folder)).Reload()
    return {
        tag: [(e.step, pytest.approx(e.value)) for e in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def test_logs_rate_and_skipped_steps_are_written_by_step(tmp_path):
    _fit(tmp_path, [3.0, 2.0])
    assert _read(tmp_path) == {
        "loss": [(1, 3.0), (2, 2.0)],
        "learning_rate": [(1, 0.1), (2, 0.2)],
        "skipped_steps": [(1, 0.0), (2, 1.0)],
        "gradient_norm": [(1, 2.5), (2, 2.5)],
    }


def test_every_nth_step_and_the_last_are_written(tmp_path):
    _fit(tmp_path, [9.0, 8.0, 7.0, 6.0, 5.0], every_steps=2)
    assert _read(tmp_path)["loss"] == [(2, 8.0), (4, 6.0), (5, 5.0)]


def test_validations_are_written_whenever_there_is_one(tmp_path):
    extra = {3: {"val_MRR@10": 0.5}}
    _fit(tmp_path, [1.0] * 4, every_steps=100, extra=extra)
    scalars = _read(tmp_path)
    assert scalars["val_MRR@10"] == [(3, 0.5)]
    assert scalars["loss"] == [(4, 1.0)]


def test_a_killed_fit_has_written_what_was_due(tmp_path):
    _fit(tmp_path, [3.0, 2.0, 1.0], every_steps=2, ends=False)
    assert _read(tmp_path)["loss"] == [(2, 2.0)]


def test_a_resumed_run_shows_no_step_twice(tmp_path):
    # Killed after step 4; the last checkpoint is that of step 2.
    _fit(tmp_path, [9.0, 8.0, 7.0, 6.0], ends=False)
    _fit(tmp_path, [5.0, 4.0, 3.0], first_step=2)
    expected = [(1, 9.0), (2, 8.0), (3, 5.0), (4, 4.0), (5, 3.0)]
    assert _read(tmp_path)["loss"] == expected


def test_it_takes_the_rate_of_a_schedule_in_a_real_fit(tmp_path):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    schedule = keras.optimizers.schedules.PolynomialDecay(0.4, 4, 0.0)
    model.compile(keras.optimizers.SGD(schedule), "mse")
    ones = keras.ops.ones((4, 1))
    callbacks = [TensorBoardScalars(tmp_path, 1)]
    model.fit(ones, ones, batch_size=1, verbose=0, callbacks=callbacks)
    rates = [(1, 0.4), (2, 0.3), (3, 0.2), (4, 0.1)]
    assert _read(tmp_path)["learning_rate"] == rates


def test_an_interval_of_zero_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="every_steps=0"):
        TensorBoardScalars(tmp_path, 0)
