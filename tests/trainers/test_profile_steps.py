"""Tests of profiling some steps."""

import keras
import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.trainers.profile_steps import ProfileSteps


def _fit(callback, steps):
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    data = np.zeros((steps, 1))
    model.fit(data, data, batch_size=1, verbose=0, callbacks=[callback])


def test_a_trace_file_appears_once(tmp_path):
    _fit(ProfileSteps(tmp_path, first=2, count=2), steps=8)
    traces = list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
    assert len(traces) == 1
    assert traces[0].stat().st_size > 0


def test_a_fit_that_ends_early_is_traced_to_its_end(tmp_path):
    _fit(ProfileSteps(tmp_path, first=2, count=50), steps=3)
    assert len(list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))) == 1


def test_a_fit_that_is_too_short_says_so(tmp_path, caplog):
    _fit(ProfileSteps(tmp_path, first=5), steps=2)
    assert "before its step 5" in caplog.text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["first", "count"])
def test_steps_are_counted_from_one(tmp_path, name):
    with pytest.raises(InvalidInputError, match=f"{name}=0"):
        ProfileSteps(tmp_path, **{name: 0})
