"""Tests of when checkpoints are written."""

from pathlib import Path

import keras
import numpy as np
import pytest

from tf_samtone.errors import TrainingInterrupted
from tf_samtone.trainers.checkpoint_callback import CheckpointCallback
from tf_samtone.trainers.stop_signals import StopSignals


class Model:
    """As much of a Keras model as the callback looks at."""

    stop_training = False

    def __init__(self, *metrics):
        self.metrics = metrics


@pytest.fixture
def make():
    """Returns a function that makes a callback and the list of its saves."""

    def make_callback(model=None, **options):
        saved = []

        def save(step):
            saved.append(step)
            return Path(f"step-{step}")

        callback = CheckpointCallback(
            save, **{"every_steps": 3, "total_steps": 12, **options}
        )
        callback.set_model(model or Model())
        return callback, saved

    return make_callback


def run(callback, batches):
    for batch in batches:
        callback.on_train_batch_end(batch)


def test_the_last_step_is_left_to_the_end_of_the_stage(make):
    callback, saved = make()
    run(callback, range(12))

    assert saved == [3, 6, 9]


def test_a_resumed_fit_goes_on_counting(make):
    callback, saved = make(first_step=4)
    run(callback, range(8))

    assert saved == [6, 9]


def test_several_steps_per_execution_miss_none(make):
    callback, saved = make()
    run(callback, [1, 3, 5, 7, 9, 11])

    # Keras calls it after steps 2, 4, 6, ...
    assert saved == [4, 6, 10]


def test_a_signal_saves_the_next_step_and_ends_the_run(make):
    signals = StopSignals()
    callback, saved = make(signals=signals, first_step=2)
    run(callback, [0])
    signals.received = "SIGTERM"

    with pytest.raises(TrainingInterrupted, match="SIGTERM.*step-4.*--resume"):
        run(callback, [1])
    # Step 3 was due; step 4 was not.
    assert saved == [3, 4]


def test_nothing_is_saved_once_training_has_stopped_early(make):
    model = Model()
    callback, saved = make(model)
    model.stop_training = True
    run(callback, [2])

    assert saved == []


def test_running_means_go_on_from_what_was_saved(make):
    mean = keras.metrics.Mean(name="loss")
    state = {
        "metrics/loss/total": np.array(6.0, np.float32),
        "metrics/loss/count": np.array(3.0, np.float32),
    }
    callback, _ = make(Model(mean), metrics=state)
    callback.on_epoch_begin(0)
    mean.update_state(10.0)

    # (6 + 10) / (3 + 1)
    assert float(mean.result()) == 4.0
