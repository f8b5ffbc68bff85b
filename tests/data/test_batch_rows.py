"""The pairs of a step, without a dataset."""

import numpy as np
import pytest

from tf_samtone.data import batch_rows
from tf_samtone.errors import InvalidInputError

IDS = np.arange(10)


@pytest.mark.parametrize(
    ("step", "rows"),
    [(0, [0, 1, 2, 3]), (1, [4, 5, 6, 7]), (2, [0, 1, 2, 3])],
)
def test_unshuffled_steps_count_on(step, rows):
    assert batch_rows(10, 4, step, shuffle=False).tolist() == rows


def test_padding_is_left_out():
    rows = batch_rows(10, 4, 2, shuffle=False, last_batch="pad")

    assert rows.tolist() == [8, 9]


def test_copies_are_moved():
    queries = np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8])

    rows = batch_rows(10, 4, 0, shuffle=False, unique_ids=(queries, IDS))

    # Row 1 repeats the query of row 0. All batches are full, so it leaves
    # through a chain, and a row of the second batch comes in its place.
    assert len(set(queries[rows])) == 4


def test_rows_are_int64():
    assert batch_rows(10, 4, 1, seed=2**40).dtype == np.int64


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": -1}, "step=-1"),
        ({"batch_size": 11}, "batch_size=11, 10 pairs"),
        ({"unique_ids": (IDS, IDS[:4])}, "4 fingerprints, num_pairs=10"),
    ],
    ids=["step", "batch_size", "unique_ids"],
)
def test_bad_arguments_are_refused(options, message):
    arguments = {"num_pairs": 10, "batch_size": 4, "step": 0, **options}

    with pytest.raises(InvalidInputError, match=message):
        batch_rows(**arguments)
