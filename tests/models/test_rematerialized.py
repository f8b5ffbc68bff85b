"""A function computed twice against the same computed once."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.models.rematerialized import rematerialized


def numbers(seed, *shape):
    values = np.random.default_rng(seed).normal(size=shape)
    return tf.constant(values, tf.float32)


WEIGHT = tf.Variable(numbers(0, 4, 4))
INPUTS, OTHER = numbers(1, 3, 4), numbers(2, 3, 4)


def function(x, y):
    return tf.tanh(tf.matmul(x, WEIGHT)) * y


def gradients(wrap, **options):
    def run(x, y):
        with tf.GradientTape() as tape:
            tape.watch([x, y])
            loss = tf.reduce_sum(tf.square(wrap(function)(x, y)))
        return loss, tape.gradient(loss, [x, y, WEIGHT])

    if options.pop("eager", False):
        return run(INPUTS, OTHER)
    return tf.function(run, autograph=False, **options)(INPUTS, OTHER)


MODES = {"eager": {"eager": True}, "graph": {}, "XLA": {"jit_compile": True}}


@pytest.mark.parametrize("options", MODES.values(), ids=MODES)
def test_results_and_gradients_are_equal(options):
    expected_loss, expected = gradients(lambda f: f, eager=True)
    loss, actual = gradients(rematerialized, **options)
    assert float(loss) == pytest.approx(float(expected_loss), rel=1e-6)
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=1e-5, atol=1e-6)


def test_arguments_that_do_not_matter_have_a_gradient_of_zero():
    with tf.GradientTape() as tape:
        tape.watch([INPUTS, OTHER])
        result = rematerialized(lambda x, y: tf.sin(x))(INPUTS, OTHER)
    _, unused = tape.gradient(result, [INPUTS, OTHER])
    np.testing.assert_array_equal(unused, np.zeros([3, 4]))


def compiled_tanhs(wrap):
    """Count the tanh that XLA leaves in a function and its gradient."""

    def run(x, y):
        with tf.GradientTape() as tape:
            tape.watch(x)
            # Squares, since a gradient of ones could be folded away.
            loss = tf.reduce_sum(tf.square(wrap(function)(x, y)))
        return loss, tape.gradient(loss, x)

    compiled = tf.function(run, autograph=False, jit_compile=True)
    hlo = compiled.experimental_get_compiler_ir(INPUTS, OTHER)
    return hlo(stage="optimized_hlo").count(" tanh(")


def test_a_compiler_does_not_merge_the_two_computations():
    assert compiled_tanhs(lambda f: f) == 1
    assert compiled_tanhs(rematerialized) == 2


def test_a_gradient_that_is_not_a_number_stays_so():
    with tf.GradientTape() as tape:
        tape.watch(INPUTS)
        result = rematerialized(tf.sin)(INPUTS) * float("nan")
    assert np.isnan(tape.gradient(result, INPUTS)).all()
