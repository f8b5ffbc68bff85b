"""Tests of the linear learning-rate schedule."""

import keras
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.optimizers import LinearDecay


# total 10, warm-up 4: rises by peak / 5 a step, then falls by peak / 6.
@pytest.mark.parametrize(
    ("step", "expected"),
    [(0, 0.2), (3, 0.8), (4, 1.0), (7, 0.5), (10, 0.0), (11, 0.0)],
)
def test_rate_follows_the_two_lines(step: int, expected: float):
    schedule = LinearDecay(total_steps=10, learning_rate=1.0, warmup_steps=4)
    assert float(schedule(step)) == pytest.approx(expected, abs=1e-7)


def test_default_starts_at_the_papers_peak():
    assert float(LinearDecay(total_steps=5)(0)) == pytest.approx(1e-3)


def test_end_learning_rate_is_reached_and_held():
    schedule = LinearDecay(
        total_steps=2, learning_rate=1.0, end_learning_rate=0.25
    )
    values = [float(schedule(step)) for step in (1, 2, 9)]
    assert values == pytest.approx([0.625, 0.25, 0.25])


def test_works_on_a_symbolic_step():
    schedule = tf.function(LinearDecay(total_steps=4, learning_rate=1.0))
    assert float(schedule(tf.constant(1, tf.int64))) == pytest.approx(0.75)


def test_serialization_round_trip():
    schedule = LinearDecay(
        total_steps=9,
        learning_rate=0.5,
        warmup_steps=3,
        end_learning_rate=0.1,
    )
    config = keras.saving.serialize_keras_object(schedule)
    restored = keras.saving.deserialize_keras_object(config)
    assert isinstance(restored, LinearDecay)
    assert restored.get_config() == schedule.get_config()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"total_steps": 0}, "Expected `total_steps` > `warmup_steps`"),
        ({"total_steps": 3, "warmup_steps": 3}, "warmup_steps=3"),
        ({"total_steps": 3, "warmup_steps": -1}, "`warmup_steps` >= 0"),
        ({"total_steps": 3, "learning_rate": -1.0}, "learning_rate=-1.0"),
        ({"total_steps": 3, "learning_rate": float("nan")}, "=nan"),
        ({"total_steps": 3, "end_learning_rate": -1.0}, "rate=-1.0"),
    ],
)
def test_refuses_values_out_of_range(arguments: dict, message: str):
    with pytest.raises(InvalidInputError, match=message):
        LinearDecay(**arguments)
