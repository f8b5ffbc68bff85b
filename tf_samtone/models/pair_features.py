"""The batches that a dual encoder trains on."""

import tensorflow as tf

from tf_samtone.errors import InvalidInputError

__all__ = ["as_feature_dataset", "checked_features"]

_FORM = (
    "a tf.data.Dataset of feature dicts (see "
    "tf_samtone.data.training_dataset) or of (queries, documents) string pairs "
    "of shape [batch]"
)


def as_feature_dataset(model, dataset):
    """Maps string pairs to feature dicts; passes feature dicts through.

    Args:
        model: `DualEncoder`, for its preprocessors.
        dataset: `tf.data.Dataset`.

    Returns:
        `tf.data.Dataset` of feature dicts.

    Raises:
        InvalidInputError: if the elements are of another form, there are none,
            or a batch holds a single pair, which has no negatives.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise InvalidInputError(
            f"Expected {_FORM}. Received: {type(dataset).__name__}. Make one "
            "with tf.data.Dataset.from_tensor_slices((queries, documents))"
            ".batch(batch_size)."
        )
    spec = dataset.element_spec
    if isinstance(spec, dict):
        _check_feature_spec(spec)
        _check_batch(dataset, spec["queries"]["token_ids"])
        return _without_bools(dataset)
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
        for name in ("token_ids", "padding_mask"):
            if name not in features:
                raise InvalidInputError(
                    f"Expected {_FORM}. Received: a batch without "
                    f"{side}/{name}, with the keys {sorted(spec)}. Map the "
                    "texts to features first."
                )
            feature = features[name]
            if tf.TensorShape(feature.shape).rank not in (None, 2):
                raise InvalidInputError(
                    f"Expected {side}/{name} of shape [batch, seq]. Received: "
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


def _without_bools(dataset):
    """Casts flags to int32: strategies cannot split a batch of bools.

    Keras adds the parts of the first batch up (AddN), which TensorFlow 2.20
    does not do for bools.
    """
    leaves = tf.nest.flatten(dataset.element_spec)
    if all(leaf.dtype != tf.bool for leaf in leaves):
        return dataset

    def cast(value):
        return tf.cast(value, tf.int32) if value.dtype == tf.bool else value

    return dataset.map(lambda batch: tf.nest.map_structure(cast, batch))


def _text_ids(texts):
    # A hash in the graph: strings must not reach the device.
    return tf.strings.to_hash_bucket_fast(texts, 2**62)
