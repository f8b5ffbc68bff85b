"""Several training datasets in one stream, batch by batch."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_samtone.data._checks import check_int
from tf_samtone.errors import InvalidInputError

_STEPS_PER_BLOCK = 4096


def mixed_dataset(
    sources: (
        Mapping[str, Callable[[int], tf.data.Dataset]]
        | Sequence[Callable[[int], tf.data.Dataset]]
    ),
    weights: Mapping[str, float] | Sequence[float],
    *,
    seed: int = 0,
    start_step: int = 0,
) -> tf.data.Dataset:
    """Draws every batch whole from one of several datasets.

    The negatives of a query are then documents of its own task, which are
    harder than those of another. (For batches that mix all tasks, join the
    lists of pairs and make one `training_dataset`.)

    The source of a step is drawn with probability `weights / sum(weights)` as
    a function of `seed` and the step alone. A source continues where it last
    stopped. With `start_step` the draws before it are counted, and every
    source is asked to start after as many batches; so the stream continues
    as the uninterrupted one does.

    ```python
    tf_samtone.data.mixed_dataset(
        {
            "web": lambda step: training_dataset(*web, start_step=step, ...),
            "code": lambda step: training_dataset(*code, start_step=step, ...),
        },
        {"web": 3, "code": 1},
    )
    ```

    Args:
        sources: functions from a start step to a `tf.data.Dataset` that
            starts there, by name or in a list. Datasets should be endless:
            the stream stops when the source of a step has no more batches.
        weights: floats above 0, by the same names or in the same order.
        seed: int. Defaults to `0`.
        start_step: int, batches to leave out at the start. Defaults to `0`.

    Returns:
        `tf.data.Dataset` of the sources' batches.

    Raises:
        InvalidInputError: if names or numbers do not match, a weight is not
            positive, or the batches of two sources differ in keys or dtypes.
    """
    check_int("start_step", start_step, 0)
    shares = _shares(weights)
    by_key = _by_key(sources)
    if list(by_key) != list(shares):
        raise InvalidInputError(
            "Expected one weight for every source. Received: sources "
            f"{list(by_key)}, weights {list(shares)}. Use the same names, or "
            "two lists of one length."
        )
    counts = _counts(shares, seed, start_step)
    datasets = [
        source(count)
        for source, count in zip(by_key.values(), counts, strict=True)
    ]
    for key, dataset in zip(by_key, datasets, strict=True):
        _check_like_first(key, dataset, datasets[0])
    first_block, skipped = divmod(start_step, _STEPS_PER_BLOCK)
    draws = (
        tf.data.Dataset.range(first_block, tf.int64.max)
        .flat_map(
            lambda block: tf.data.Dataset.from_tensor_slices(
                _draws(block, shares, seed)
            )
        )
        .skip(skipped)
    )
    mixed = tf.data.Dataset.choose_from_datasets(
        datasets, draws, stop_on_empty_dataset=True
    )
    if all(
        dataset.cardinality() == tf.data.INFINITE_CARDINALITY
        for dataset in datasets
    ):
        mixed = mixed.apply(
            tf.data.experimental.assert_cardinality(
                tf.data.INFINITE_CARDINALITY
            )
        )
    return mixed.prefetch(tf.data.AUTOTUNE)


def source_of_step(
    weights: Mapping[str, float] | Sequence[float], step: int, *, seed: int = 0
) -> tuple[str | int, int]:
    """Tells where `mixed_dataset` takes a batch from.

    Args:
        weights: as given to `mixed_dataset`.
        step: int, from 0.
        seed: int, as given. Defaults to `0`.

    Returns:
        the name (or number) of the source, and the step within it, e.g. for
        `batch_rows`.

    Raises:
        InvalidInputError: as `mixed_dataset` does.
    """
    check_int("step", step, 0)
    shares = _shares(weights)
    block, place = divmod(step, _STEPS_PER_BLOCK)
    with tf.device("CPU:0"):
        source = int(_draws(tf.constant(block, tf.int64), shares, seed)[place])
    return list(shares)[source], _counts(shares, seed, step)[source]


def _by_key(values: Mapping[str, Any] | Sequence[Any]) -> dict[Any, Any]:
    # Sorted, so that the order in which a dict was written changes nothing.
    if isinstance(values, Mapping):
        return {key: values[key] for key in sorted(values)}
    return dict(enumerate(values))


def _shares(
    weights: Mapping[str, float] | Sequence[float],
) -> dict[Any, float]:
    shares = _by_key(weights)
    for key, weight in shares.items():
        if not isinstance(weight, int | float) or not 0 < weight < math.inf:
            raise InvalidInputError(
                "Expected every weight to be a number above 0. Received: "
                f"weights[{key!r}]={weight!r}. Leave out a source that is not "
                "to be used."
            )
    if not shares:
        raise InvalidInputError(
            "Expected at least one source. Received: none. Pass functions "
            "that make datasets, and their weights."
        )
    return shares


def _draws(block: tf.Tensor, shares: dict[Any, float], seed: int) -> tf.Tensor:
    """Returns the sources of one block of steps, int64."""
    ends = np.cumsum(list(shares.values()), dtype=np.float64)
    key = tf.random.experimental.stateless_fold_in(
        tf.constant((seed & 0x7FFFFFFF, (seed >> 31) & 0x7FFFFFFF), tf.int32),
        tf.cast(block, tf.int64),
    )
    points = tf.random.stateless_uniform(
        [_STEPS_PER_BLOCK], key, dtype=tf.float64
    )
    # The last end is left out: every point beyond the others is its own.
    return tf.searchsorted(
        tf.constant(ends[:-1] / ends[-1]),
        points,
        side="right",
        out_type=tf.int64,
    )


def _counts(shares: dict[Any, float], seed: int, stop: int) -> list[int]:
    """Counts how often each source is drawn in the steps before `stop`."""
    counts = np.zeros(len(shares), np.int64)
    for start in range(0, stop, _STEPS_PER_BLOCK):
        with tf.device("CPU:0"):
            block = tf.constant(start // _STEPS_PER_BLOCK, tf.int64)
            draws = _draws(block, shares, seed)[: stop - start].numpy()
        counts += np.bincount(draws, minlength=len(shares))
    return counts.tolist()


def _check_like_first(
    key: object, dataset: object, first: tf.data.Dataset
) -> None:
    if not isinstance(dataset, tf.data.Dataset):
        raise InvalidInputError(
            f"Expected source {key!r} to return a tf.data.Dataset. Received: "
            f"{type(dataset).__name__}. Pass a function from a start step, "
            "e.g. lambda step: training_dataset(..., start_step=step)."
        )
    kinds, first_kinds = (
        tf.nest.map_structure(lambda spec: spec.dtype.name, like.element_spec)
        for like in (dataset, first)
    )
    if kinds != first_kinds:
        raise InvalidInputError(
            "Expected the batches of all sources to have the same keys and "
            f"dtypes. Received: {kinds} from source {key!r}, {first_kinds} "
            "from the first. Make all with the same options."
        )
