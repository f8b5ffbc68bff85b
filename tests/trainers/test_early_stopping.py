"""Tests of early stopping."""

import json
import types

import keras
import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers.early_stopping import EarlyStopping


class _Validation(keras.callbacks.Callback):
    """A validation with prescribed values, one a step."""

    def __init__(self, values):
        super().__init__()
        self.metrics = ("R@1",)
        self.values = values
        self.history = []

    def on_train_batch_end(self, batch, logs=None):
        value = self.values[len(self.history)]
        self.history.append((batch + 1, {"R@1": value}))
        logs["val_R@1"] = value


class _LastStep(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.step = batch + 1


def _fit(*values, state=None, patience=2, **options):
    """Fits a toy of ten steps; returns the callback and the last step."""
    validation = _Validation([*values, *[0.0] * 10])
    stopping = EarlyStopping(validation, "R@1", patience, **options)
    if state is not None:
        stopping.restore(state)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    last = _LastStep()
    model.fit(
        np.zeros((10, 1)),
        np.zeros((10, 1)),
        batch_size=1,
        verbose=0,
        callbacks=[validation, stopping, last],
    )
    return stopping, last.step


def test_the_fit_ends_right_after_the_step_that_is_one_too_many():
    stopping, last_step = _fit(0.1, 0.3, 0.2, 0.3)
    assert last_step == stopping.stopped_step == 4


def test_an_improvement_starts_the_count_anew():
    assert _fit(0.1, 0.0, 0.2, 0.1, 0.3, 0.2, 0.1)[1] == 7


def test_a_run_that_improves_is_not_stopped():
    stopping, last_step = _fit(*np.linspace(0.1, 0.9, 10))
    assert last_step == 10
    assert stopping.stopped_step is None


def test_improvements_up_to_min_delta_do_not_count():
    assert _fit(0.50, 0.51, 0.52, min_delta=0.05)[1] == 3


def test_the_count_goes_on_in_a_resumed_run():
    stopping = EarlyStopping(_Validation([]), "R@1", patience=2)
    state = {**stopping.state(), "best": 0.5, "best_step": 7, "stale": 1}
    resumed, last_step = _fit(0.4, state=json.loads(json.dumps(state)))
    assert last_step == 1
    assert resumed.state()["best"] == 0.5
    assert resumed.state()["stopped_step"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patience": 0}, "patience=0"),
        ({"min_delta": -1.0}, "min_delta=-1.0"),
        ({"metric": "MRR@10"}, "metric='MRR@10'"),
    ],
    ids=["patience", "min_delta", "metric"],
)
def test_bad_options_are_refused(options, message):
    validation = types.SimpleNamespace(metrics=("R@1",), history=[])
    with pytest.raises(InvalidInputError, match=message):
        EarlyStopping(validation, **{"metric": "R@1", **options})
