"""Tests of copying stored tensors into variables, a few rows at a time."""

import pathlib

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.checkpoints import _assign
from tf_samtone.checkpoints._assign import assign_streamed, check_equal
from tf_samtone.errors import MismatchError

ROWS, COLUMNS = 7, 5


class Stored:
    """A tensor that notes which rows are asked for."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.asked: list[tuple[int, int]] = []

    def __call__(self, start: int, stop: int) -> np.ndarray:
        self.asked.append((start, stop))
        return self.values[start:stop]


def variable(shape: tuple[int, ...], dtype: str = "float32", value: float = -1):
    """Return a Keras variable of one value, which no stored tensor has."""
    return keras.Variable(np.full(shape, value, np.float32), dtype=dtype)


def numbers(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 3


@pytest.fixture
def small_chunks(monkeypatch) -> None:
    """Make a chunk of two rows of `COLUMNS` numbers."""
    monkeypatch.setattr(_assign, "_CHUNK_BYTES", 2 * COLUMNS * 4)


def test_a_small_tensor_is_copied_at_once():
    stored, target = Stored(numbers(ROWS, COLUMNS)), variable((ROWS, COLUMNS))
    assign_streamed(target, stored)
    np.testing.assert_array_equal(target.numpy(), stored.values)
    assert stored.asked == [(0, ROWS)]


def test_rows_come_in_chunks_and_the_last_may_be_short(small_chunks):
    stored, target = Stored(numbers(ROWS, COLUMNS)), variable((ROWS, COLUMNS))
    assign_streamed(target, stored)
    np.testing.assert_array_equal(target.numpy(), stored.values)
    assert stored.asked == [(0, 2), (2, 4), (4, 6), (6, 7)]


def test_a_transposed_tensor_is_turned_chunk_by_chunk(small_chunks):
    stored, target = Stored(numbers(ROWS, COLUMNS)), variable((COLUMNS, ROWS))
    assign_streamed(target, stored, transposed=True)
    np.testing.assert_array_equal(target.numpy(), stored.values.T)
    # Still rows of the stored tensor, not of the variable.
    assert stored.asked == [(0, 2), (2, 4), (4, 6), (6, 7)]


def test_a_row_larger_than_a_chunk_is_read_alone(monkeypatch):
    monkeypatch.setattr(_assign, "_CHUNK_BYTES", 1)
    stored, target = Stored(numbers(3, COLUMNS)), variable((3, COLUMNS))
    assign_streamed(target, stored)
    np.testing.assert_array_equal(target.numpy(), stored.values)
    assert stored.asked == [(0, 1), (1, 2), (2, 3)]


def test_a_vector_is_copied_in_chunks(monkeypatch):
    monkeypatch.setattr(_assign, "_CHUNK_BYTES", 3 * 4)
    stored, target = Stored(numbers(ROWS)), variable((ROWS,))
    assign_streamed(target, stored)
    np.testing.assert_array_equal(target.numpy(), stored.values)
    assert stored.asked == [(0, 3), (3, 6), (6, 7)]


@pytest.mark.parametrize("transposed", [False, True])
def test_a_bfloat16_variable_gets_rounded_values(small_chunks, transposed):
    values = numbers(ROWS, COLUMNS)
    target = variable(
        values.T.shape if transposed else values.shape, "bfloat16"
    )
    assign_streamed(target, Stored(values), transposed=transposed)
    assert target.dtype == "bfloat16"
    expected = (values.T if transposed else values).astype(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(
        tf.cast(target.value, "float32").numpy(), expected.astype(np.float32)
    )


def test_a_float32_variable_keeps_every_bit():
    # The smallest numbers, and neighbours that a detour would make equal.
    values = np.array(
        [1e-45, -1e-38, np.nextafter(1, 2), np.nextafter(1, 0), -0.0],
        np.float32,
    )
    target = variable((5,))
    assign_streamed(target, Stored(values))
    np.testing.assert_array_equal(
        target.numpy().view(np.uint32), values.view(np.uint32)
    )


@pytest.mark.parametrize("transposed", [False, True])
def test_nothing_but_the_part_is_written(small_chunks, transposed):
    """Stop after the first chunk: what follows is as it was."""
    shape = (COLUMNS, ROWS) if transposed else (ROWS, COLUMNS)
    target = variable(shape)

    def read(start: int, stop: int) -> np.ndarray:
        if start:
            raise OSError("the disk is gone")
        return np.zeros((stop - start, COLUMNS), np.float32)

    with pytest.raises(OSError, match="the disk is gone"):
        assign_streamed(target, read, transposed=transposed)
    rows = target.numpy().T if transposed else target.numpy()
    np.testing.assert_array_equal(rows[:2], 0)
    np.testing.assert_array_equal(rows[2:], -1)


def test_the_variable_stays_the_same_resource(small_chunks):
    target = variable((ROWS, COLUMNS))
    before = target.value
    assign_streamed(target, Stored(numbers(ROWS, COLUMNS)))
    assert target.value is before
    np.testing.assert_array_equal(before.numpy(), numbers(ROWS, COLUMNS))


def test_a_variable_of_a_strategy_is_written(small_chunks):
    """One replica is enough to have a variable without a handle."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    with strategy.scope():
        target = variable((ROWS, COLUMNS))
        assign_streamed(target, Stored(numbers(ROWS, COLUMNS)))
    assert isinstance(target.value, tf.distribute.DistributedValues)
    for copy in target.value.values:
        np.testing.assert_array_equal(copy.numpy(), numbers(ROWS, COLUMNS))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_shared_variable_equals_what_it_was_read_from(small_chunks, dtype):
    """Rounding to the variable's type is no difference."""
    target = variable((ROWS, COLUMNS), dtype)
    stored = Stored(numbers(ROWS, COLUMNS))
    assign_streamed(target, stored)
    check_equal(target, stored, pathlib.Path("weights"))


@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_a_shared_variable_of_other_values_is_named(small_chunks, row):
    target = variable((ROWS, COLUMNS))
    values = numbers(ROWS, COLUMNS)
    assign_streamed(target, Stored(values))
    values[row, COLUMNS - 1] += 1
    with pytest.raises(MismatchError, match=r"variable.* in weights to have"):
        check_equal(target, Stored(values), pathlib.Path("weights"))
