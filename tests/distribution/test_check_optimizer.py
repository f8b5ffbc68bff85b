"""Options of optimizers that are refused, and those that are not."""

import types

import keras
import pytest
import tensorflow as tf

from tf_samtone.distribution import check_optimizer
from tf_samtone.errors import InvalidInputError
from tf_samtone.optimizers import Adafactor


@pytest.mark.parametrize(
    "make_optimizer, message",
    [
        (
            lambda: keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD()),
            "LossScaleOptimizer .* mixed_bfloat16",
        ),
        (
            lambda: keras.optimizers.SGD(loss_scale_factor=8.0),
            "loss_scale_factor=8.0",
        ),
        (
            lambda: keras.optimizers.SGD(gradient_accumulation_steps=4),
            "gradient_accumulation_steps=4.*gradient_cache_batch_size",
        ),
        (
            lambda: keras.optimizers.MultiOptimizer(
                keras.optimizers.OptimizerMap(keras.optimizers.SGD())
            ),
            "MultiOptimizer",
        ),
    ],
    ids=["wrapper", "loss scale", "accumulation", "several"],
)
def test_what_cannot_be_right_is_refused(make_optimizer, message):
    with pytest.raises(InvalidInputError, match=message):
        check_optimizer(make_optimizer())


@pytest.mark.parametrize(
    "options",
    [
        {"clipnorm": 1.0},
        {"global_clipnorm": 1.0},
        {"clipvalue": 1.0},
        {"weight_decay": 0.1},
        {"use_ema": True, "ema_overwrite_frequency": 3},
    ],
    ids=lambda options: next(iter(options)),
)
def test_what_is_right_passes(options):
    check_optimizer(Adafactor(**options), tf.distribute.get_strategy())


def test_an_optimizer_of_another_strategy_is_refused():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")

    with pytest.raises(InvalidInputError, match="strategy.scope"):
        check_optimizer(Adafactor(), strategy)


def test_an_optimizer_of_the_strategy_passes():
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    with strategy.scope():
        optimizer = Adafactor()

    check_optimizer(optimizer, strategy, jit_compile=True)


@pytest.fixture
def under_two_replicas():
    """An optimizer, and what is looked at of a strategy with two replicas."""
    strategy = types.SimpleNamespace(num_replicas_in_sync=2)
    optimizer = Adafactor()
    optimizer._distribution_strategy = strategy
    return optimizer, strategy


def test_compiling_the_step_of_several_replicas_is_refused(under_two_replicas):
    with pytest.raises(InvalidInputError, match="2 replicas.*collectives"):
        check_optimizer(*under_two_replicas, jit_compile=True)


def test_keras_decides_about_compiling_by_itself(under_two_replicas):
    check_optimizer(*under_two_replicas, jit_compile="auto")
