"""Tests of the size of Adafactor's state, and of what it remembers."""

import keras
import numpy as np
import tensorflow as tf

from tf_samtone.optimizers import Adafactor


def base_encoder_shapes() -> list[tuple[int, ...]]:
    """List the variables of T5 1.1 base's encoder."""
    dim, inner, attention, layers = 768, 2048, 12 * 64, 12
    per_layer = [
        *[(dim, attention)] * 3,
        (attention, dim),
        *[(dim, inner)] * 2,
        (inner, dim),
        (dim,),
        (dim,),
    ]
    return [(32128, dim), (32, 12), (dim,), *per_layer * layers]


def num_bytes(variables) -> int:
    return sum(
        int(np.prod(v.shape)) * np.dtype(v.dtype).itemsize for v in variables
    )


def state_share(optimizer_class) -> float:
    """Return the bytes of the optimizer's state per byte of weights.

    Variables of a graph have no memory before a session runs it, which saves
    a gigabyte.
    """
    with tf.Graph().as_default():
        weights = [
            keras.Variable(keras.initializers.Zeros(), shape=shape)
            for shape in base_encoder_shapes()
        ]
        optimizer = optimizer_class()
        optimizer.build(weights)
        return num_bytes(optimizer.variables) / num_bytes(weights)


def test_state_of_t5_base_is_a_small_share_of_its_weights():
    assert 0.0 < state_share(Adafactor) <= 0.015


def test_keras_keeps_more_state_than_weights():
    # The reason why this class exists; remove it when this fails.
    assert state_share(keras.optimizers.Adafactor) > 1.0


def test_compiled_update_equals_the_plain_one():
    generator = np.random.default_rng(0)
    values = [
        generator.normal(size=shape).astype(np.float32)
        for shape in ((6, 5), (5,))
    ]
    gradients = [tf.constant(value[::-1]) for value in values]
    results = []
    for jit_compile in (False, True):
        variables = [keras.Variable(value) for value in values]
        optimizer = Adafactor(1e-2, min_factored_dim=0, step_offset=1)
        optimizer.build(variables)
        step = tf.function(optimizer.apply, jit_compile=jit_compile)
        for _ in range(3):
            step(gradients)
        results.append([*variables, *optimizer.variables])
    for plain, compiled in zip(*results, strict=True):
        np.testing.assert_allclose(compiled, plain, rtol=2e-6)


def test_step_offset_forgets_what_the_state_held():
    value = np.ones((2, 3), np.float32)
    resumed = Adafactor(0.1, step_offset=7)
    variable = keras.Variable(value)
    resumed.build([variable])
    moment = resumed.variables[-1]
    # As if restored from the checkpoint of a run of 7 updates.
    resumed.iterations.assign(7)
    moment.assign(np.full((2, 3), 100.0))
    resumed.apply([tf.fill((2, 3), 2.0)])
    # t = 1: the new moment is the squared gradient alone.
    np.testing.assert_allclose(moment, np.full((2, 3), 4.0), rtol=1e-6)
