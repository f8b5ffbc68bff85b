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
        InvalidInputError: if the elements are of another form.
    """
    if not isinstance(dataset, tf.data.Dataset):
        raise InvalidInputError(
            f"Expected {_FORM}. Received: {type(dataset).__name__}."
        )
    spec = dataset.element_spec
    if isinstance(spec, dict):
        return dataset
    is_pair = isinstance(spec, tuple) and len(spec) == 2
    if not is_pair or any(
        not isinstance(s, tf.TensorSpec) or s.dtype != tf.string for s in spec
    ):
        raise InvalidInputError(f"Expected {_FORM}. Received: {spec}.")
    if any(s.shape.rank != 1 for s in spec):
        raise InvalidInputError(
            f"Expected {_FORM}. Received unbatched strings: {spec}. Call "
            "dataset.batch(batch_size, drop_remainder=True) first."
        )

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
    for side in ("queries", "documents"):
        missing = {"token_ids", "padding_mask"} - set(features.get(side, ()))
        if missing:
            raise InvalidInputError(
                f"Expected {_FORM}. Received: a batch without "
                f"{side}/{sorted(missing)[0]}."
            )
    return features


def _text_ids(texts):
    # A hash in the graph: strings must not reach the device.
    return tf.strings.to_hash_bucket_fast(texts, 2**62)
