"""Tests of Adafactor against a float64 version and against Keras's."""

import os
import pathlib
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.optimizers import Adafactor, LinearDecay


def rms(x: np.ndarray) -> float:
    return float(np.sqrt(np.mean(x * x)))


def numpy_adafactor(
    value: np.ndarray,
    gradients: list[np.ndarray],
    rate: float = 1e-3,
    *,
    factored: bool,
    parameter_scale: bool = True,
    clip: float = 1.0,
    cap: bool = False,
    offset: int = 0,
) -> np.ndarray:
    """Run the paper's algorithm in float64, as t5x writes it."""
    value = value.astype(np.float64)
    row = np.zeros(value.shape[:-1])
    column = np.zeros(value.shape[:-2] + value.shape[-1:])
    full = np.zeros(value.shape)
    for t, gradient in enumerate(gradients, start=1):
        gradient = gradient.astype(np.float64)
        beta = 1 - max(1, t - offset) ** -0.8
        square = gradient**2 + 1e-30
        if factored:
            row = beta * row + (1 - beta) * square.mean(-1)
            column = beta * column + (1 - beta) * square.mean(-2)
            outer = row[..., :, None] * column[..., None, :]
            full = outer / row.mean(-1)[..., None, None]
        else:
            full = beta * full + (1 - beta) * square
        update = gradient / np.sqrt(full)
        update /= max(1.0, rms(update) / clip)
        step_rate = min(rate, t**-0.5) if cap else rate
        if parameter_scale:
            step_rate *= max(1e-3, rms(value))
        value = value - step_rate * update
    return value


def run(optimizer, value: np.ndarray, gradients: list) -> np.ndarray:
    variable = keras.Variable(value, name="kernel")
    optimizer.build([variable])

    @tf.function
    def step(gradient):
        optimizer.apply([gradient])

    for gradient in gradients:
        step(tf.constant(gradient))
    return variable.numpy()


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(0)


def draws(generator, shape, count: int) -> list[np.ndarray]:
    """Draw gradients whose rows and columns differ in size."""
    size = np.exp(generator.normal(size=shape[-1]))
    return [
        (generator.normal(size=shape) * size).astype(np.float32)
        for _ in range(count)
    ]


@pytest.mark.parametrize(
    ("shape", "minimum", "factored"),
    [
        ((7,), 0, False),
        ((6, 9), 0, True),
        ((6, 9), 6, True),
        ((6, 9), 7, False),
        ((2, 6, 9), 0, True),
        ((128, 130), 128, True),
    ],
    ids=["vector", "matrix", "at_limit", "below_limit", "rank_3", "default"],
)
def test_matches_the_float64_algorithm(generator, shape, minimum, factored):
    value = generator.normal(size=shape).astype(np.float32)
    gradients = draws(generator, shape, 12)
    actual = run(Adafactor(1e-2, min_factored_dim=minimum), value, gradients)
    expected = numpy_adafactor(value, gradients, 1e-2, factored=factored)
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize(
    ("options", "oracle"),
    [
        (
            {"multiply_by_parameter_scale": False},
            {"parameter_scale": False},
        ),
        ({"clip_threshold": 0.1}, {"clip": 0.1}),
        ({"clip_threshold": None}, {"clip": np.inf}),
        ({"relative_step": True}, {"cap": True}),
        ({"factored": False}, {"factored": False}),
        ({"step_offset": 3}, {"offset": 3}),
    ],
    ids=[
        "parameter_scale",
        "clip_threshold",
        "no_clipping",
        "relative_step",
        "not_factored",
        "step_offset",
    ],
)
def test_option_has_its_effect(generator, options, oracle):
    value = generator.normal(size=(5, 4)).astype(np.float32)
    gradients = draws(generator, (5, 4), 8)
    # A rate of 0.5 is above 1 / sqrt(t) from t = 5 on.
    actual = run(
        Adafactor(0.5, min_factored_dim=0, **options), value, gradients
    )
    plain = numpy_adafactor(value, gradients, 0.5, factored=True)
    oracle = {"factored": True, **oracle}
    expected = numpy_adafactor(value, gradients, 0.5, **oracle)
    np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=2e-5)
    assert np.abs(expected - plain).max() > 1e-2


@pytest.mark.parametrize("shape", [(9,), (6, 9), (2, 6, 9)], ids=str)
@pytest.mark.parametrize("rate", [1e-3, 0.3], ids=["below_cap", "above_cap"])
def test_agrees_with_keras_over_50_steps(generator, shape, rate):
    value = generator.normal(size=shape).astype(np.float32)
    gradients = draws(generator, shape, 50)
    ours = run(
        Adafactor(rate, min_factored_dim=0, relative_step=True),
        value,
        gradients,
    )
    theirs = run(
        keras.optimizers.Adafactor(rate, relative_step=True),
        value,
        gradients,
    )
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-6 * scale)


def test_weight_decay_is_decoupled(generator):
    value = generator.normal(size=(3,)).astype(np.float32)
    gradients = draws(generator, (3,), 1)
    actual = run(Adafactor(0.1, weight_decay=0.5), value, gradients)
    # W shrinks by rate * decay = 0.05, then the update is applied to it.
    expected = numpy_adafactor(value * 0.95, gradients, 0.1, factored=False)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_follows_a_schedule(generator):
    value = generator.normal(size=(3,)).astype(np.float32)
    gradients = draws(generator, (3,), 3)
    schedule = LinearDecay(total_steps=1, learning_rate=0.1)
    actual = run(Adafactor(schedule), value, gradients)
    # The rate is 0.1 for the first update and 0 for the other two.
    expected = numpy_adafactor(value, gradients[:1], 0.1, factored=False)
    np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "xla"])
def test_sparse_gradient_equals_the_dense_one(generator, jit_compile):
    value = generator.normal(size=(8, 4)).astype(np.float32)
    rows = generator.normal(size=(3, 4)).astype(np.float32)
    dense = np.zeros((8, 4), np.float32)
    # Row 5 occurs twice: its contributions add up.
    np.add.at(dense, [5, 2, 5], rows)
    variable = keras.Variable(value)
    optimizer = Adafactor(1e-2, min_factored_dim=0)
    optimizer.build([variable])

    @tf.function(jit_compile=jit_compile)
    def step():
        optimizer.apply(
            [tf.IndexedSlices(rows, tf.constant([5, 2, 5]), (8, 4))]
        )

    step()
    expected = numpy_adafactor(value, [dense], 1e-2, factored=True)
    np.testing.assert_allclose(variable.numpy(), expected, rtol=2e-6)


def test_trains_an_embedding_through_fit(generator):
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Embedding(10, 4),
            keras.layers.GlobalAveragePooling1D(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(Adafactor(0.3, min_factored_dim=0), loss="mse")
    inputs = generator.integers(0, 10, size=(32, 5))
    targets = (inputs == 3).sum(-1, keepdims=True).astype(np.float32)
    history = model.fit(inputs, targets, batch_size=8, epochs=10, verbose=0)
    losses = history.history["loss"]
    assert losses[-1] < 0.5 * losses[0]


def test_rows_without_gradient_stay_finite_beside_huge_ones():
    gradient = np.zeros((4, 4), np.float32)
    gradient[0] = 1e8
    value = np.ones((4, 4), np.float32)
    actual = run(Adafactor(min_factored_dim=0), value, [gradient] * 3)
    assert np.isfinite(actual).all()
    np.testing.assert_array_equal(actual[1:], value[1:])


def test_state_of_a_matrix_is_one_row_and_one_column():
    matrix = keras.Variable(np.zeros((256, 512), np.float32), name="kernel")
    bias = keras.Variable(np.zeros(512, np.float32), name="bias")
    optimizer = Adafactor()
    optimizer.build([matrix, bias])
    # Without the step counter and the learning rate.
    sizes = [np.prod(v.shape) for v in optimizer.variables if v.shape != ()]
    assert sizes == [256, 512, 512]


def test_moments_of_a_bfloat16_variable_are_float32():
    variable = keras.Variable(np.ones((4, 4)), dtype="bfloat16")
    optimizer = Adafactor(0.5, min_factored_dim=0)
    optimizer.build([variable])
    optimizer.apply([tf.ones((4, 4), tf.bfloat16)])
    assert {v.dtype for v in optimizer.variables[2:]} == {"float32"}
    # G / sqrt(mean G^2) = 1 and RMS(W) = 1, so W = 1 - 0.5.
    np.testing.assert_array_equal(np.float32(variable.numpy()), 0.5)


REPLICAS_SCRIPT = """
import contextlib

import keras
import numpy as np
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(
    cpu, [tf.config.LogicalDeviceConfiguration()] * 2
)
from tf_samtone.optimizers import Adafactor

strategy = tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
value = np.arange(12, dtype=np.float32).reshape(4, 3) - 5.0


def train(scope, run):
    with scope():
        table = keras.Variable(value)
        optimizer = Adafactor(1e-2, min_factored_dim=0)
        optimizer.build([table])

    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.gather(table.value, ids)))
        optimizer.apply([tape.gradient(loss, table.value)])

    for _ in range(3):
        tf.function(run)(step)
    return table.numpy()


def on_both(step):
    def one_replica():
        rank = tf.distribute.get_replica_context().replica_id_in_sync_group
        step(tf.gather([[0, 1], [3, 0]], rank))

    strategy.run(one_replica)


together = train(strategy.scope, on_both)
alone = train(contextlib.nullcontext, lambda step: step([0, 1, 3, 0]))
np.testing.assert_allclose(together, alone, rtol=1e-6)
assert np.abs(together - value).max() > 1e-3
"""


def test_two_replicas_equal_one_device():
    root = pathlib.Path(__file__).parents[2]
    subprocess.run(
        [sys.executable, "-c", REPLICAS_SCRIPT],
        check=True,
        cwd=root,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )


def test_serialization_round_trip():
    optimizer = Adafactor(
        LinearDecay(total_steps=7),
        beta_2_decay=-0.7,
        epsilon_1=1e-20,
        epsilon_2=1e-2,
        clip_threshold=2.0,
        multiply_by_parameter_scale=False,
        relative_step=True,
        min_factored_dim=3,
        factored=False,
        step_offset=5,
        weight_decay=0.1,
    )
    config = keras.saving.serialize_keras_object(optimizer)
    restored = keras.saving.deserialize_keras_object(config)
    assert isinstance(restored, Adafactor)
    assert restored.get_config() == optimizer.get_config()


def test_restored_state_continues_bit_for_bit(generator):
    value = generator.normal(size=(5, 4)).astype(np.float32)
    gradients = draws(generator, (5, 4), 4)
    whole = run(Adafactor(min_factored_dim=0), value, gradients)
    first = Adafactor(min_factored_dim=0)
    middle = run(first, value, gradients[:2])
    second = Adafactor(min_factored_dim=0)
    variable = keras.Variable(middle)
    second.build([variable])
    second.set_weights([v.numpy() for v in first.variables])
    run_step = tf.function(lambda gradient: second.apply([gradient]))
    run_step(tf.constant(gradients[2]))
    run_step(tf.constant(gradients[3]))
    np.testing.assert_array_equal(variable.numpy(), whole)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon_1": 0.0}, "epsilon_1=0.0"),
        ({"epsilon_2": -1.0}, "epsilon_2=-1.0"),
        ({"clip_threshold": float("nan")}, "clip_threshold=nan"),
        ({"beta_2_decay": 0.8}, "Expected `beta_2_decay` < 0"),
        ({"min_factored_dim": -1}, "Expected `min_factored_dim` >= 0"),
        ({"step_offset": -1}, "Expected `step_offset` >= 0"),
    ],
)
def test_refuses_values_out_of_range(arguments: dict, message: str):
    with pytest.raises(InvalidInputError, match=message):
        Adafactor(**arguments)
