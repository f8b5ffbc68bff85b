"""What each replica gets, without any devices."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.distribution import distribute_dataset
from tf_samtone.errors import InvalidInputError


class Replicas:
    """As much of a strategy as the division of batches needs.

    What it distributes is the dataset of one worker's parts, in order.
    """

    def __init__(self, replicas: int, workers: int = 1, worker: int = 0):
        self.num_replicas_in_sync = replicas
        self.context = tf.distribute.InputContext(workers, worker, replicas)

    def distribute_datasets_from_function(self, function):
        return function(self.context)


def rows_dataset(rows, batch_size, static=True, **more):
    features = {
        "queries": {"token_ids": np.arange(rows * 2).reshape(rows, 2)},
        "query_ids": np.arange(rows),
        **more,
    }
    dataset = tf.data.Dataset.from_tensor_slices(features)
    return dataset.batch(batch_size, drop_remainder=static)


def packed_dataset(groups):
    """Two pairs and three rows a group; the second pair is in two rows."""
    segments = np.array([[1, 1, 2], [2, 2, 0], [0, 0, 0]], np.int32)
    packed = {
        "token_ids": np.arange(9 * groups).reshape(3 * groups, 3),
        "segment_ids": np.tile(segments, (groups, 1)),
        "lengths": np.tile([2, 3], groups),
    }
    features = {"queries": packed, "query_ids": np.arange(2 * groups)}
    return tf.data.Dataset.from_tensors(features)


def values(distributed, name):
    return [part[name].numpy().tolist() for part in distributed]


def test_replicas_get_consecutive_rows_in_their_order():
    parts = distribute_dataset(rows_dataset(16, 8), Replicas(4))

    assert values(parts, "query_ids") == [
        [0, 1], [2, 3], [4, 5], [6, 7],
        [8, 9], [10, 11], [12, 13], [14, 15],
    ]  # fmt: skip


def test_every_worker_keeps_the_parts_of_its_own_replicas():
    parts = distribute_dataset(
        rows_dataset(16, 8), Replicas(4, workers=2, worker=1)
    )

    assert values(parts, "query_ids") == [[4, 5], [6, 7], [12, 13], [14, 15]]


def test_static_shapes_are_those_of_a_part():
    parts = distribute_dataset(rows_dataset(16, 8), Replicas(4))

    assert parts.element_spec["queries"]["token_ids"].shape == [2, 2]
    assert parts.element_spec["query_ids"].shape == [2]


def test_keras_counts_batches_rather_than_parts():
    parts = distribute_dataset(rows_dataset(24, 8), Replicas(4))

    assert parts._cardinality == 3


def test_full_batches_get_no_mask():
    parts = distribute_dataset(rows_dataset(16, 8), Replicas(4))

    assert set(parts.element_spec) == {"queries", "query_ids"}


def test_a_short_batch_is_filled_with_rows_that_do_not_count():
    # The batches (0, 1, 2, 3) and (4, 5, 6, 6).
    parts = distribute_dataset(rows_dataset(7, 4, static=False), Replicas(2))

    assert values(parts, "query_ids") == [[0, 1], [2, 3], [4, 5], [6, 6]]
    assert values(parts, "is_valid") == [[1, 1], [1, 1], [1, 1], [1, 0]]
    tokens = [part["queries"]["token_ids"].numpy() for part in parts]
    np.testing.assert_array_equal(tokens[-1], [[12, 13], [12, 13]])


def test_rows_that_did_not_count_still_do_not():
    dataset = rows_dataset(3, 3, static=False, is_valid=[1, 0, 1])

    parts = distribute_dataset(dataset, Replicas(2))

    assert values(parts, "is_valid") == [[1, 0], [1, 0]]


def test_a_batch_smaller_than_the_replicas_is_filled_too():
    parts = distribute_dataset(rows_dataset(1, 4, static=False), Replicas(4))

    assert values(parts, "is_valid") == [[1], [0], [0], [0]]


def test_flags_become_integers():
    dataset = rows_dataset(4, 4, flag=np.array([True, False, True, True]))

    parts = distribute_dataset(dataset, Replicas(2))

    assert parts.element_spec["flag"].dtype == tf.int32
    assert values(parts, "flag") == [[1, 0], [1, 1]]


def test_one_replica_gets_the_batches_as_they_are():
    dataset = rows_dataset(7, 4, static=False)

    assert distribute_dataset(dataset, tf.distribute.get_strategy()) is dataset


@pytest.mark.parametrize("groups", [2, 4], ids=["one each", "two each"])
def test_replicas_get_complete_groups(groups):
    parts = list(distribute_dataset(packed_dataset(groups), Replicas(2)))

    rows = 3 * groups // 2
    tokens = [part["queries"]["token_ids"].numpy() for part in parts]
    np.testing.assert_array_equal(
        np.concatenate(tokens), np.arange(9 * groups).reshape(-1, 3)
    )
    assert [len(x) for x in tokens] == [rows, rows]
    assert [len(part["queries"]["lengths"]) for part in parts] == [
        groups,
        groups,
    ]


def test_a_group_across_replicas_is_an_error():
    # One group of two pairs and four rows.
    features = {
        "queries": {
            "segment_ids": np.array([[1, 1], [1, 2], [2, 2], [0, 0]], np.int32),
            "lengths": np.array([3, 3], np.int32),
        }
    }
    dataset = tf.data.Dataset.from_tensors(features)

    parts = distribute_dataset(dataset, Replicas(2))

    with pytest.raises(tf.errors.InvalidArgumentError, match="packing_groups"):
        list(parts)


def test_a_batch_size_that_cannot_be_shared_is_refused():
    with pytest.raises(
        InvalidInputError,
        match="4 replicas .*queries/token_ids with 6 rows.* 4 or 8",
    ):
        distribute_dataset(rows_dataset(12, 6), Replicas(4))


def test_packed_batches_of_unknown_size_are_refused():
    dataset = packed_dataset(2)
    spec = tf.nest.map_structure(
        lambda s: tf.TensorSpec([None, *s.shape[1:]], s.dtype),
        dataset.element_spec,
    )
    unknown = tf.data.Dataset.from_generator(
        lambda: iter(dataset), output_signature=spec
    )

    with pytest.raises(InvalidInputError, match='last_batch="pad"'):
        distribute_dataset(unknown, Replicas(2))


@pytest.mark.parametrize("replicas", [1, 2])
def test_strings_are_refused(replicas):
    dataset = rows_dataset(4, 4, title=np.array(["a", "b", "c", "d"]))

    with pytest.raises(InvalidInputError, match="title of strings"):
        distribute_dataset(dataset, Replicas(replicas))
