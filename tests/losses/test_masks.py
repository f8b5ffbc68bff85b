"""Masks of self and of duplicates."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.losses import masks


def test_self_mask_of_a_whole_batch_is_the_diagonal():
    np.testing.assert_array_equal(masks.self_mask(3, 3), np.eye(3, dtype=bool))


@pytest.mark.parametrize("offset", [0, 2, 4])
def test_self_mask_is_shifted_by_the_row_offset(offset):
    expected = np.eye(6, dtype=bool)[offset : offset + 2]
    np.testing.assert_array_equal(masks.self_mask(2, 6, offset), expected)


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64], ids=lambda d: d.name)
def test_row_offset_may_be_a_tensor(dtype):
    expected = np.eye(4, dtype=bool)[2:]
    mask = masks.self_mask(2, 4, tf.constant(2, dtype))
    np.testing.assert_array_equal(mask, expected)


def negatives(*kinds):
    kinds = [tf.constant(ids, tf.int64) for ids in kinds]
    return masks.negative_mask(masks.self_mask(3, 3), kinds, kinds).numpy()


def test_without_ids_all_others_are_negatives():
    np.testing.assert_array_equal(negatives(), ~np.eye(3, dtype=bool))


def test_equal_ids_are_not_negatives_of_each_other():
    expected = [[False, False, True], [False, False, True], [True, True, False]]
    np.testing.assert_array_equal(negatives([7, 7, 9]), expected)


def test_an_equal_id_of_either_kind_is_enough():
    # Rows 0 and 1 share the query, rows 1 and 2 the document.
    expected = [
        [False, False, True],
        [False, False, False],
        [True, False, False],
    ]
    np.testing.assert_array_equal(negatives([7, 7, 9], [4, 5, 5]), expected)


def test_an_id_of_one_kind_is_not_compared_with_the_other_kind():
    np.testing.assert_array_equal(
        negatives([1, 2, 3], [3, 1, 2]), ~np.eye(3, dtype=bool)
    )


def test_ids_above_two_to_the_24th_do_not_collide():
    # As float32 all three are 2**24.
    ids = [2**24, 2**24 + 1, 2**62]
    np.testing.assert_array_equal(negatives(ids), ~np.eye(3, dtype=bool))
