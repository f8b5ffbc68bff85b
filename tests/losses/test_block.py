"""Which columns of a block are negatives of which rows."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.losses.block import Block

# Two local rows, the third and fourth example of five.
ROWS = [2, 3]


def block(num_columns=5, **options):
    return Block(
        columns=tf.zeros([num_columns, 3]),
        row_index=tf.constant(ROWS),
        **options,
    )


def ids(values):
    return tf.constant(values, tf.int64)


def flags(values):
    return tf.constant(np.array(values, bool))


def test_the_own_example_is_left_out():
    mask = block().mask(0, None)
    assert mask.numpy().astype(int).tolist() == [
        [1, 1, 0, 1, 1],
        [1, 1, 1, 0, 1],
    ]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("others", [[1, 1, 1, 1, 0, 0, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0]]),
        ("own", [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1]]),
        ("all", [[1] * 8, [1] * 8]),
    ],
)
def test_a_scope_speaks_of_the_columns_of_an_example(scope, expected):
    mask = block(8, group_size=2, scope=scope).mask(0, None)
    assert mask.numpy().astype(int).tolist() == expected


def test_an_equal_id_of_either_kind_is_no_negative():
    mask = block(
        row_ids=[ids([7, 8]), ids([1, 2])],
        column_ids=[ids([7, 0, 7, 8, 0]), ids([3, 2, 1, 2, 3])],
    ).mask(0, None)
    assert mask.numpy().astype(int).tolist() == [
        [0, 1, 0, 1, 1],
        [1, 0, 1, 0, 1],
    ]


def test_what_the_caller_excludes_is_no_negative():
    excluded = flags([[1, 0, 0, 0, 0], [0, 0, 0, 0, 1]])
    mask = block(excluded=excluded).mask(0, None)
    assert mask.numpy().astype(int).tolist() == [
        [0, 1, 0, 1, 1],
        [1, 1, 1, 0, 0],
    ]


def test_padding_is_nobodys_negative():
    is_valid = flags([1, 1, 1, 1, 0])
    mask = block(is_valid=is_valid).mask(0, None)
    assert not mask.numpy()[:, 4].any()


@pytest.fixture(params=["others", "own", "all"])
def full_block(request):
    """A block with every rule, of two columns per example."""
    generator = np.random.default_rng(0)
    return block(
        10,
        group_size=2,
        scope=request.param,
        row_ids=[ids([1, 2])],
        column_ids=[ids(generator.integers(0, 4, 10))],
        excluded=tf.constant(generator.random([2, 10]) < 0.3),
        is_valid=tf.constant(generator.random(10) < 0.8),
    )


@pytest.mark.parametrize("size", [1, 3, 5])
def test_the_tiles_of_a_mask_make_up_the_mask(full_block, size):
    padded = full_block.padded(size)
    width = padded.columns.shape[0]
    tiles = [padded.mask(start, size) for start in range(0, width, size)]
    actual = tf.concat(tiles, axis=1).numpy()
    assert not actual[:, 10:].any()
    np.testing.assert_array_equal(actual[:, :10], full_block.mask(0, None))


def test_padding_reaches_the_next_multiple():
    assert block().padded(4).columns.shape == [8, 3]
    assert block().padded(5).columns.shape == [5, 3]
    assert block().padded(64).columns.shape == [64, 3]


@pytest.mark.parametrize("scope", ["others", "own", "all"])
def test_padded_columns_are_negatives_in_no_scope(scope):
    mask = block(scope=scope).padded(4).mask(0, None)
    assert not mask.numpy()[:, 5:].any()


@pytest.mark.parametrize(
    ("scope", "expected"),
    [("others", [5, 6]), ("own", [2, 1]), ("all", [7, 7])],
)
def test_candidates_are_the_valid_columns_in_scope(scope, expected):
    candidates = block(
        8,
        group_size=2,
        scope=scope,
        is_valid=flags([1, 1, 1, 1, 1, 1, 0, 1]),
        row_ids=[ids([0, 0])],
        column_ids=[ids([0] * 8)],
    ).num_candidates()
    assert candidates.numpy().tolist() == expected
