"""Batches of all replicas, divided among them."""

from typing import Any

import tensorflow as tf

from tf_samtone.errors import InvalidInputError

__all__ = ["distribute_dataset"]


def distribute_dataset(
    dataset: tf.data.Dataset, strategy: tf.distribute.Strategy
) -> tf.data.Dataset | tf.distribute.DistributedDataset:
    """Divides every batch into equal consecutive parts, one per replica.

    Replica r of n gets the r-th part of axis 0 of every feature, which is the
    order in which `gather_rows` puts the parts together again. In a packed
    batch with n groups, or a multiple, every part holds complete groups.

    A batch whose size is not static may be short. Its last row is repeated up
    to a multiple of n, and `is_valid` is 0 for the repetitions; every batch
    then has `is_valid`. With several workers, each one reads the whole
    dataset, which must be the same everywhere, and keeps its own parts.

    Args:
        dataset: `tf.data.Dataset` of dicts (of dicts) of tensors, the features
            of the batches of all replicas together. Flags become int32.
        strategy: the model's strategy.

    Returns:
        What `keras.Model.fit` and `evaluate` take: with one replica the
        dataset, else a `tf.distribute.DistributedDataset` with as many
        batches, whose static shapes are those of a part.

    Raises:
        InvalidInputError: if a feature is a string, a static axis 0 is not
            divisible by the number of replicas, or that of a packed feature
            is not static.
    """
    spec = dataset.element_spec
    _check_dtypes(spec)
    dataset = _without_bools(dataset)
    replicas = strategy.num_replicas_in_sync
    if replicas == 1:
        return dataset
    if _check_sizes(spec, replicas):
        dataset = dataset.map(_with_groups_checked(replicas), tf.data.AUTOTUNE)
    else:
        dataset = dataset.map(_padded(replicas), tf.data.AUTOTUNE)

    def parts_of_worker(
        context: tf.distribute.InputContext,
    ) -> tf.data.Dataset:
        count = replicas // context.num_input_pipelines
        first = context.input_pipeline_id * count

        def parts(features: Any) -> Any:
            return tf.nest.map_structure(
                lambda x: _divided(x, replicas)[first : first + count], features
            )

        divided = dataset.map(parts, tf.data.AUTOTUNE)
        return divided.unbatch().prefetch(count)

    distributed = strategy.distribute_datasets_from_function(parts_of_worker)
    # It counts parts, and Keras reads the number of steps here. There is no
    # public way to set it (TensorFlow 2.20).
    distributed._cardinality = dataset.cardinality().numpy()
    return distributed


def _check_dtypes(spec: Any) -> None:
    for path, leaf in _leaves(spec):
        if leaf.dtype == tf.string:
            raise InvalidInputError(
                f"Expected features of numbers. Received: {path} of strings, "
                "which no GPU or TPU holds. Leave it out, or pass int64 ids, "
                "e.g. from tf_samtone.text.fingerprint."
            )


def _check_sizes(spec: Any, replicas: int) -> bool:
    """Returns whether axis 0 of every feature is static, and divisible."""
    leaves = _leaves(spec)
    for path, leaf in leaves:
        rows = leaf.shape[0] if leaf.shape.rank else None
        if rows is not None and rows % replicas:
            lower = rows // replicas * replicas
            sizes = [x for x in (lower, lower + replicas) if x]
            raise InvalidInputError(
                f"Expected batches that {replicas} replicas can share equally. "
                f"Received: {path} with {rows} rows. Choose a batch size (or "
                f"packing_groups) that gives {' or '.join(map(str, sizes))}."
            )
    # The rows of packed texts are as many as the batch needs; the texts that
    # they hold are counted by `lengths`.
    free = ("token_ids", "segment_ids") if _is_packed(spec) else ()
    if all(
        leaf.shape.rank and (leaf.shape[0] or path.endswith(free))
        for path, leaf in leaves
    ):
        return True
    if any(path.endswith("segment_ids") for path, _ in leaves):
        raise InvalidInputError(
            "Expected packed batches of one static size, as replicas share "
            "whole groups. Received: "
            f"{', '.join(f'{path} {leaf.shape}' for path, leaf in leaves)}. "
            'Make them with last_batch="drop" or last_batch="pad".'
        )
    return False


def _without_bools(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Casts flags to int32: strategies cannot add up a batch of bools.

    Keras adds the parts of the first batch up (AddN), which TensorFlow 2.20
    does not do for bools.
    """
    leaves = tf.nest.flatten(dataset.element_spec)
    if all(leaf.dtype != tf.bool for leaf in leaves):
        return dataset

    def cast(value: tf.Tensor) -> tf.Tensor:
        return tf.cast(value, tf.int32) if value.dtype == tf.bool else value

    return dataset.map(lambda batch: tf.nest.map_structure(cast, batch))


def _with_groups_checked(replicas: int) -> Any:
    """Returns a map that fails if a part would hold pieces of groups."""

    def checked(features: dict[str, Any]) -> dict[str, Any]:
        assertions = [
            tf.debugging.assert_less_equal(
                tf.reduce_max(packed["segment_ids"]),
                tf.size(packed["lengths"]) // replicas,
                f"Expected {name} packed in a multiple of {replicas} groups, "
                "one or more per replica. Received a group that spans several "
                "replicas. Pass packing_groups to training_dataset.",
            )
            for name, packed in features.items()
            if isinstance(packed, dict) and "segment_ids" in packed
        ]
        with tf.control_dependencies([x for x in assertions if x is not None]):
            return tf.nest.map_structure(tf.identity, features)

    return checked


def _padded(replicas: int) -> Any:
    """Returns a map that repeats the last row up to a multiple of replicas."""

    def padded(features: dict[str, Any]) -> dict[str, Any]:
        rows = tf.shape(tf.nest.flatten(features)[0])[0]
        missing = -rows % replicas
        is_valid = features.get("is_valid", tf.ones([rows], tf.int32))
        zeros = tf.zeros([missing], is_valid.dtype)

        def repeat_last(x: tf.Tensor) -> tf.Tensor:
            shape = x.shape
            x = tf.concat([x, tf.repeat(x[-1:], missing, axis=0)], axis=0)
            return tf.ensure_shape(x, [None, *shape[1:]])

        return {
            **tf.nest.map_structure(repeat_last, features),
            "is_valid": tf.concat([is_valid, zeros], axis=0),
        }

    return padded


def _divided(x: tf.Tensor, replicas: int) -> tf.Tensor:
    """Returns `[replicas, rows / replicas, ...]`, as static as possible."""
    rows = x.shape[0]
    rows = -1 if rows is None else rows // replicas
    rest = [
        tf.shape(x)[i] if size is None else size
        for i, size in enumerate(x.shape)
    ]
    return tf.reshape(x, [replicas, rows, *rest[1:]])


def _is_packed(spec: Any) -> bool:
    return any("segment_ids" in path for path, _ in _leaves(spec))


def _leaves(spec: Any, prefix: str = "") -> list[tuple[str, tf.TensorSpec]]:
    """Returns paths such as queries/token_ids, with what is there."""
    if not isinstance(spec, dict):
        return [(prefix, spec)]
    return [
        leaf
        for name, value in spec.items()
        for leaf in _leaves(value, f"{prefix}/{name}" if prefix else name)
    ]
