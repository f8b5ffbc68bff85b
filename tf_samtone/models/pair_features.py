"""The batches that a dual encoder trains on."""

import tensorflow as tf

from tf_samtone.distribution import distribute_dataset
from tf_samtone.errors import InvalidInputError

__all__ = ["as_feature_dataset", "checked_features"]

_TEXTS = ("queries", "documents", "hard_negatives")
_FORM = (
    "a tf.data.Dataset of feature dicts (see "
    "tf_samtone.data.training_dataset) or of (queries, documents) string pairs "
    "of shape [batch]"
)


def as_feature_dataset(model, dataset, micro_batch_size=None):
    """Maps string pairs to feature dicts and divides them among replicas.

    Args:
        model: `DualEncoder`, for its preprocessors and its strategy.
        dataset: `tf.data.Dataset`.
        micro_batch_size: int or `None`. Pairs that a tower encodes at once;
            packed rows must be packed in such groups. Defaults to `None`,
            which is all pairs of a replica.

    Returns:
        What `keras.Model.fit` takes, see `distribute_dataset`.

    Raises:
        InvalidInputError: if the elements are of another form, there are none,
            a batch holds a single pair, which has no negatives, or it cannot
            be shared equally by replicas and micro-batches.
    """
    dataset = _feature_dataset(model, dataset)
    replicas = model.distribute_strategy.num_replicas_in_sync
    dataset = _with_groups_checked(dataset, replicas, micro_batch_size)
    return distribute_dataset(dataset, model.distribute_strategy)


def _feature_dataset(model, dataset):
    if not isinstance(dataset, tf.data.Dataset):
        raise InvalidInputError(
            f"Expected {_FORM}. Received: {type(dataset).__name__}. Make one "
            "with tf.data.Dataset.from_tensor_slices((queries, documents))"
            ".batch(batch_size)."
        )
    spec = dataset.element_spec
    if isinstance(spec, dict):
        _check_feature_spec(spec)
        queries = spec["queries"]
        _check_batch(dataset, queries.get("lengths", queries["token_ids"]))
        return dataset
    _check_string_spec(spec)
    _check_batch(dataset, spec[0])

    def features(queries, documents):
        return {
            "queries": model.query_preprocessor(queries),
            "documents": model.document_preprocessor(documents),
            "query_ids": _text_ids(queries),
            "document_ids": _text_ids(documents),
        }

    return dataset.map(features, tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def checked_features(data):
    """Returns the feature dict of one batch, or says what is missing."""
    features = data[0] if isinstance(data, tuple) else data
    _check_feature_spec(features)
    return features


def _check_feature_spec(spec):
    for side in ("queries", "documents"):
        features = spec.get(side)
        features = features if isinstance(features, dict) else {}
        is_packed = "segment_ids" in features
        mask = "segment_ids" if is_packed else "padding_mask"
        for name in ("token_ids", mask, *(["lengths"] if is_packed else [])):
            if name not in features:
                raise InvalidInputError(
                    f"Expected {_FORM}. Received: a batch without "
                    f"{side}/{name}, with the keys {sorted(spec)}. Map the "
                    "texts to features first."
                )
            feature = features[name]
            rank = 1 if name == "lengths" else 2
            if tf.TensorShape(feature.shape).rank not in (None, rank):
                raise InvalidInputError(
                    f"Expected {side}/{name} of rank {rank}. Received: "
                    f"shape={feature.shape}. Call dataset.batch(batch_size, "
                    "drop_remainder=True) first."
                )
    for name in ("query_ids", "document_ids"):
        if name in spec and not tf.as_dtype(spec[name].dtype).is_integer:
            raise InvalidInputError(
                f"Expected `{name}` of an integer dtype. Received: "
                f"dtype={spec[name].dtype.name}. Pass int64, e.g. from "
                "tf_samtone.text.fingerprint."
            )


def _check_string_spec(spec):
    is_pair = isinstance(spec, tuple) and len(spec) == 2
    if not is_pair or any(
        not isinstance(s, tf.TensorSpec) or s.dtype != tf.string for s in spec
    ):
        raise InvalidInputError(
            f"Expected {_FORM}. Received: {spec}. Put the queries first and "
            "the documents second."
        )
    if any(s.shape.rank not in (None, 1) for s in spec):
        raise InvalidInputError(
            f"Expected {_FORM}. Received strings of another shape: {spec}. "
            "Call dataset.batch(batch_size, drop_remainder=True) first."
        )


def _check_batch(dataset, spec):
    """Refuses an empty dataset, and batches of one, which teach nothing."""
    batch_size = spec.shape[0] if spec.shape.rank else None
    is_empty = int(dataset.cardinality()) == 0
    if batch_size is None and not is_empty:
        # Only the first batch tells; a short last one is no mistake.
        first = next(iter(dataset.take(1)), None)
        is_empty = first is None
        if not is_empty:
            batch_size = int(tf.shape(tf.nest.flatten(first)[0])[0])
    if is_empty:
        raise InvalidInputError(
            f"Expected {_FORM}. Received: a dataset without elements. Check "
            "its files, and that batch_size is at most the number of pairs."
        )
    if batch_size is not None and batch_size < 2:
        raise InvalidInputError(
            "Expected batches of at least two pairs, as the negatives of a "
            f"pair are the others of its batch. Received: a batch of "
            f"{batch_size}. Raise the batch size."
        )


def _with_groups_checked(dataset, replicas, micro_batch_size):
    """Makes a batch fail that is packed in other groups than are encoded.

    The segments of two groups would be mixed up, and nobody would notice.
    """
    spec = dataset.element_spec
    packed = [name for name in _TEXTS if "segment_ids" in spec.get(name, ())]
    if not packed:
        return dataset
    pairs = spec["queries"]["lengths"].shape[0]
    if pairs is None:
        raise InvalidInputError(
            "Expected packed batches of one static size. Received: lengths of "
            f"shape {spec['queries']['lengths'].shape}. Make them with "
            "training_dataset."
        )
    size = micro_batch_size or max(1, pairs // replicas)
    if pairs % (size * replicas):
        raise InvalidInputError(
            "Expected batches that replicas and micro-batches share equally. "
            f"Received: {pairs} pairs, {replicas} replicas, micro-batches of "
            f"{size}. Choose a multiple of {size * replicas} pairs."
        )
    groups = pairs // size

    def checked(features):
        checks = []
        for name in packed:
            found = tf.reduce_max(features[name]["segment_ids"])
            expected = tf.size(features[name]["lengths"]) // groups
            check = tf.debugging.assert_equal(
                found,
                expected,
                f"Expected {name} packed in {groups} groups, one for each "
                "replica and micro-batch. Pass packing_groups="
                f"{groups} to training_dataset.",
            )
            checks.append(check)
        with tf.control_dependencies([c for c in checks if c is not None]):
            return tf.nest.map_structure(tf.identity, features)

    return dataset.map(checked, tf.data.AUTOTUNE)


def _text_ids(texts):
    # A hash in the graph: strings must not reach the device.
    return tf.strings.to_hash_bucket_fast(texts, 2**62)
