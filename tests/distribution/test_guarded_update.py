"""Updates on one device: compiled, eager, and against NumPy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.distribution import guarded_update
from tf_samtone.errors import InvalidInputError
from tf_samtone.optimizers import Adafactor


def weight_and_optimizer(**options):
    weight = keras.Variable(np.array([3.0, 4.0], np.float32))
    optimizer = keras.optimizers.SGD(0.5, **options)
    return weight, optimizer


@pytest.mark.parametrize(
    "options, expected",
    [
        # The gradient is (6, 8), of norm 10.
        ({}, [0.0, 0.0]),
        ({"global_clipnorm": 5.0}, [1.5, 2.0]),
        ({"global_clipnorm": 20.0}, [0.0, 0.0]),
        ({"clipnorm": 5.0}, [1.5, 2.0]),
        ({"clipvalue": 7.0}, [0.0, 0.5]),
    ],
    ids=["none", "global_clipnorm", "long enough", "clipnorm", "clipvalue"],
)
def test_clipping_is_that_of_the_optimizer(options, expected):
    weight, optimizer = weight_and_optimizer(**options)

    guarded_update(optimizer, [tf.constant([6.0, 8.0])], [weight])

    np.testing.assert_allclose(weight.numpy(), expected, rtol=1e-6)


def test_the_norm_is_that_before_clipping():
    weight, optimizer = weight_and_optimizer(global_clipnorm=1.0)

    is_finite, norm = guarded_update(
        optimizer, [tf.constant([6.0, 8.0])], [weight]
    )

    assert is_finite
    np.testing.assert_allclose(norm, 10.0, rtol=1e-6)


def test_the_norm_spans_all_variables():
    variables = [keras.Variable([1.0]), keras.Variable([[1.0]])]
    optimizer = keras.optimizers.SGD(1.0, global_clipnorm=1.0)
    gradients = [tf.constant([3.0]), tf.constant([[4.0]])]

    guarded_update(optimizer, gradients, variables)

    np.testing.assert_allclose(variables[0].numpy(), [0.4], rtol=1e-6)
    np.testing.assert_allclose(variables[1].numpy(), [[0.2]], rtol=1e-6)


def test_repeated_rows_of_a_sparse_gradient_are_added_up_before_the_norm():
    table = keras.Variable(np.zeros((3, 1), np.float32))
    optimizer = keras.optimizers.SGD(1.0, global_clipnorm=2.5)
    rows = tf.IndexedSlices(
        tf.constant([[1.0], [3.0], [2.0]]), tf.constant([1, 2, 1]), [3, 1]
    )

    # Rows (0, 3, 3), norm sqrt(18).
    _, norm = guarded_update(optimizer, [rows], [table])

    np.testing.assert_allclose(norm, np.sqrt(18.0), rtol=1e-6)
    row = -3.0 * 2.5 / np.sqrt(18.0)
    np.testing.assert_allclose(table.numpy(), [[0.0], [row], [row]], rtol=1e-6)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan], ids=str)
def test_a_bad_gradient_changes_nothing(bad):
    weight, optimizer = weight_and_optimizer(
        momentum=0.9, weight_decay=0.1, use_ema=True
    )
    optimizer.build([weight])
    before = [v.numpy() for v in [weight, *optimizer.variables]]

    is_finite, norm = guarded_update(
        optimizer, [tf.constant([1.0, bad])], [weight]
    )

    assert not is_finite
    assert not np.isfinite(norm)
    after = [v.numpy() for v in [weight, *optimizer.variables]]
    np.testing.assert_equal(after, before)


def test_a_bad_loss_changes_nothing():
    weight, optimizer = weight_and_optimizer()

    is_finite, norm = guarded_update(
        optimizer,
        [tf.constant([6.0, 8.0])],
        [weight],
        finite_also=[tf.constant(1.0), tf.constant([0.0, np.nan])],
    )

    assert not is_finite
    np.testing.assert_allclose(norm, 10.0, rtol=1e-6)
    np.testing.assert_array_equal(weight.numpy(), [3.0, 4.0])


def test_the_options_of_the_optimizer_are_kept():
    weight, optimizer = weight_and_optimizer(global_clipnorm=5.0)

    guarded_update(optimizer, [tf.constant([6.0, 8.0])], [weight])

    assert optimizer.global_clipnorm == 5.0


@pytest.mark.parametrize(
    "make_optimizer",
    [
        lambda: Adafactor(0.1, global_clipnorm=0.5, weight_decay=0.1),
        lambda: keras.optimizers.AdamW(0.1, global_clipnorm=0.5),
        lambda: keras.optimizers.Nadam(0.1, clipvalue=0.5),
    ],
    ids=["Adafactor", "AdamW", "Nadam"],
)
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "XLA"])
def test_a_compiled_step_is_that_of_keras(make_optimizer, jit_compile):
    gradients = [[6.0, 8.0], [1.0, np.inf], [-0.1, 0.2]]
    expected = keras.Variable([3.0, 4.0])
    peer = make_optimizer()
    for i in (0, 2):
        peer.apply([tf.constant(gradients[i])], [expected])
    weight = keras.Variable([3.0, 4.0])
    optimizer = make_optimizer()
    optimizer.build([weight])

    @tf.function(jit_compile=jit_compile)
    def step(gradient):
        return guarded_update(optimizer, [gradient], [weight])[0]

    flags = [bool(step(tf.constant(g))) for g in gradients]

    assert flags == [True, False, True]
    np.testing.assert_allclose(weight.numpy(), expected.numpy(), rtol=1e-6)


def test_an_optimizer_is_built_where_it_is_needed():
    weight = keras.Variable([3.0, 4.0])
    optimizer = keras.optimizers.Adam(0.1)

    @tf.function
    def step(gradient):
        return guarded_update(optimizer, [gradient], [weight])

    step(tf.constant([6.0, 8.0]))

    assert int(optimizer.iterations.numpy()) == 1
    np.testing.assert_allclose(weight.numpy(), [2.9, 3.9], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Gradients do not exist")
def test_a_variable_without_a_gradient_stays():
    weight, optimizer = weight_and_optimizer()
    other = keras.Variable([1.0])

    guarded_update(optimizer, [None, tf.constant([6.0, 8.0])], [other, weight])

    np.testing.assert_array_equal(other.numpy(), [1.0])
    np.testing.assert_allclose(weight.numpy(), [0.0, 0.0], atol=1e-6)


def test_no_gradient_at_all_is_refused():
    weight, optimizer = weight_and_optimizer()

    with pytest.raises(InvalidInputError, match="None for all of 1"):
        guarded_update(optimizer, [None], [weight])
