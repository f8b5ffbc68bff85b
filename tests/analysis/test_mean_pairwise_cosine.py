"""Tests of the mean pairwise cosine."""

import itertools

import numpy as np
import pytest

from tf_samtone.analysis import mean_pairwise_cosine
from tf_samtone.errors import InvalidInputError


def test_equal_rows_give_one():
    rows = np.tile([3.0, 4.0], (5, 1))
    assert mean_pairwise_cosine(rows) == pytest.approx(1.0)


def test_it_is_the_mean_over_all_pairs_of_different_rows():
    rows = np.random.default_rng(0).normal(size=(7, 3))
    cosines = [
        a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        for a, b in itertools.combinations(rows, 2)
    ]
    assert mean_pairwise_cosine(rows) == pytest.approx(np.mean(cosines))


def test_a_row_that_is_not_finite_gives_nan():
    assert np.isnan(mean_pairwise_cosine([[np.nan, 0.0], [1.0, 0.0]]))


def test_a_single_row_is_refused():
    with pytest.raises(InvalidInputError, match=r"n > 1.*\(1, 2\)"):
        mean_pairwise_cosine([[1.0, 0.0]])
