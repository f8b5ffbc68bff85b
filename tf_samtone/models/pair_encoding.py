"""The embeddings of the local rows of a batch."""

from typing import Any

import tensorflow as tf

from tf_samtone.models.dropout_seed import dropout_seed, folded_seed

__all__ = ["count_pairs", "encode_pairs"]


def encode_pairs(
    model: Any,
    features: dict[str, Any],
    *,
    training: bool,
    seed: tf.Tensor | None = None,
) -> dict[str, tf.Tensor]:
    """Encodes queries, documents and hard negatives.

    Args:
        model: `DualEncoder`.
        features: dict with `queries`, `documents` and optionally
            `hard_negatives` (token features `[rows, k, seq]`; or packed rows,
            with `lengths` `[rows, k]`).
        training: bool. Whether dropout is on.
        seed: int32 `[2]`, decides dropout. Defaults to `None`, which leaves it
            to Keras.

    Returns:
        dict with `queries` and `documents`, float32 `[rows, dim]`, and with
        `hard_negatives`, float32 `[rows, k, dim]`, if there are any.
    """
    sides = (
        ("queries", model.query_tower),
        ("documents", model.document_tower),
        ("hard_negatives", model.document_tower),
    )
    embeddings = {}
    for number, (name, tower) in enumerate(sides):
        if features.get(name) is None:
            continue
        tokens, shape = _as_texts(features[name])
        side_seed = None if seed is None else folded_seed(seed, number)
        with dropout_seed(side_seed):
            vectors = tower(tokens, training=training)
        embeddings[name] = tf.reshape(vectors, [*shape, model.dim])
    return embeddings


def count_pairs(features: dict[str, Any]) -> int | tf.Tensor:
    """Returns the number of pairs, an int where it is static."""
    queries = features["queries"]
    rows = queries.get("lengths", queries["token_ids"])
    count = rows.shape[0]
    return tf.shape(rows)[0] if count is None else count


def _as_texts(tokens: dict[str, tf.Tensor]) -> tuple[dict[str, Any], list[Any]]:
    """Returns features of one text per row, and the shape that texts have."""
    if "segment_ids" in tokens:
        return tokens, _shape(tokens["lengths"])
    *shape, length = _shape(tokens["token_ids"])
    if len(shape) == 1:
        return tokens, shape
    flat = {k: tf.reshape(v, [-1, length]) for k, v in tokens.items()}
    return flat, shape


def _shape(tensor: tf.Tensor) -> list[Any]:
    dynamic = tf.shape(tensor)
    return [
        dynamic[axis] if size is None else size
        for axis, size in enumerate(tensor.shape)
    ]
