"""The kernel: exact statistics, in memory that does not grow with B x B."""

import re

import numpy as np
import pytest
import tensorflow as tf
import testing

from tf_samtone.losses.block import Block
from tf_samtone.losses.tiled_softmax import dense_statistics, tiled_statistics

SCALE = 10.0


def blocks_of(columns, others, rows, **options):
    row_index = tf.range(rows)
    return [
        Block(columns=columns, row_index=row_index, **options),
        Block(columns=others, row_index=row_index, log_weight=0.5, **options),
    ]


def inputs(rows=7, dim=4, dtype="float64"):
    anchors, first, second = [
        tf.constant(testing.random_unit_vectors(seed, rows, dim), dtype)
        for seed in range(3)
    ]
    reference = tf.reduce_sum(anchors * first, axis=1)
    scale = tf.constant(SCALE, dtype)
    return anchors, reference, scale, first, second


def with_gradients(kernel, arrays, *arguments):
    """Return the statistics and the gradients of a mixture of them."""
    with tf.GradientTape() as tape:
        tape.watch(arrays)
        anchors, reference, scale, first, second = arrays
        blocks = blocks_of(first, second, anchors.shape[0])
        statistics = kernel(anchors, reference, scale, blocks, *arguments)
        weights = tf.range(1, anchors.shape[0] + 1)
        weights = tf.cast(weights, anchors.dtype)
        total = tf.reduce_sum(
            weights * statistics.excess + 0.1 * statistics.total / weights
        )
    return [*statistics, *tape.gradient(total, arrays)]


@pytest.mark.parametrize("tile_size", [1, 3, 7, 32])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float64", 1e-13), ("float32", 1e-6)]
)
@pytest.mark.parametrize("with_ceiling", [False, True])
def test_tiles_give_what_the_whole_gives(
    tile_size, dtype, tolerance, with_ceiling
):
    arrays = inputs(dtype=dtype)
    ceiling = arrays[1] + 0.3 if with_ceiling else None
    expected = with_gradients(dense_statistics, arrays, ceiling)
    actual = with_gradients(tiled_statistics, arrays, tile_size, ceiling)
    for one, other in zip(actual, expected, strict=True):
        assert testing.relative_error(one, other) <= tolerance


KERNELS = {
    "dense": lambda *arguments: dense_statistics(*arguments),
    "tiled": lambda *arguments: tiled_statistics(*arguments, 2),
}


@pytest.fixture(params=KERNELS.values(), ids=KERNELS)
def kernel(request):
    return request.param


def test_statistics_by_hand(kernel):
    # Row 0 has one negative, at the similarity 0.8 - 0.5 above the reference;
    # row 1 has one, 0.6 below it.
    columns = tf.constant([[0.0, 0.6], [0.8, 0.0]])
    block = Block(columns=columns, row_index=tf.range(2), log_weight=0.25)
    statistics = kernel(
        tf.eye(2), tf.constant([0.5, 1.2]), tf.constant(10.0), [block]
    )
    z = np.array([(0.8 - 0.5) * 10 + 0.25, (0.6 - 1.2) * 10 + 0.25])
    np.testing.assert_allclose(statistics.total, z, rtol=1e-6)
    np.testing.assert_allclose(
        statistics.excess, np.log(1 + np.exp(z)), rtol=1e-6
    )
    assert statistics.count.numpy().tolist() == [1, 1]


def test_rows_without_negatives_have_nothing(kernel):
    columns = tf.ones([3, 2])
    block = Block(
        columns=columns,
        row_index=tf.range(3),
        is_valid=tf.zeros([3], tf.bool),
    )
    arguments = columns, tf.ones([3]), tf.constant(1.0), [block]
    for statistic in kernel(*arguments):
        np.testing.assert_array_equal(statistic, np.zeros(3))


def test_no_blocks_have_no_excess(kernel):
    statistics = kernel(tf.ones([2, 2]), tf.ones([2]), tf.constant(1.0), [])
    assert statistics.excess.numpy().tolist() == [0, 0]


def test_logits_beyond_the_range_of_exp_stay_exact(kernel):
    # exp(1000) overflows every float.
    anchors = tf.constant([[1.0, 0.0]])
    columns = tf.constant([[0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    block = Block(columns=columns, row_index=tf.constant([0]))
    statistics = kernel(anchors, tf.zeros([1]), tf.constant(1000.0), [block])
    assert statistics.excess.numpy() == pytest.approx([1000 + np.log(2)])


def test_a_first_tile_wholly_masked_gives_no_nan():
    columns = tf.constant(testing.random_unit_vectors(0, 6, 3))
    block = Block(
        columns=columns,
        row_index=tf.range(6),
        is_valid=tf.constant([False] * 4 + [True] * 2),
    )
    arguments = columns, tf.ones([6]), tf.constant(100.0), [block]
    with tf.GradientTape() as tape:
        tape.watch(columns)
        actual = tiled_statistics(*arguments, 2).excess
    assert np.isfinite(tape.gradient(actual, columns)).all()
    np.testing.assert_allclose(
        actual, dense_statistics(*arguments).excess, atol=1e-6
    )


def test_an_empty_block_adds_nothing(kernel):
    anchors, reference, scale, first, _ = inputs()
    empty = Block(columns=first[:0], row_index=tf.range(7), scope="all")
    full = Block(columns=first, row_index=tf.range(7))
    with_empty = kernel(anchors, reference, scale, [full, empty])
    without = kernel(anchors, reference, scale, [full])
    np.testing.assert_array_equal(with_empty.excess, without.excess)


def buffer_sizes(kernel, rows, dim, *arguments):
    """Return the sizes of all arrays in the program that XLA makes."""

    @tf.function(jit_compile=True)
    def step(anchors, first, second):
        with tf.GradientTape() as tape:
            tape.watch([anchors, first, second])
            reference = tf.reduce_sum(anchors * first, axis=1)
            blocks = blocks_of(first, second, rows)
            statistics = kernel(
                anchors, reference, tf.constant(SCALE), blocks, *arguments
            )
            total = tf.reduce_sum(statistics.excess)
        return tape.gradient(total, [anchors, first, second])

    arrays = [tf.zeros([rows, dim])] * 3
    text = step.experimental_get_compiler_ir(*arrays)(stage="optimized_hlo")
    shapes = re.findall(r"\b[a-z]+[0-9]*\[([0-9,]+)\]", text)
    return [np.prod([int(n) for n in shape.split(",")]) for shape in shapes]


def test_no_array_of_the_compiled_tiles_is_batch_by_batch():
    rows, dim, tile_size = 211, 8, 16
    sizes = buffer_sizes(tiled_statistics, rows, dim, tile_size)
    # XLA puts the columns of both blocks side by side, padded to 224 rows.
    assert max(sizes) <= 2 * 224 * max(tile_size, 2 * dim)
    # The same search finds the matrix of the dense kernel.
    assert max(buffer_sizes(dense_statistics, rows, dim)) >= rows * rows
