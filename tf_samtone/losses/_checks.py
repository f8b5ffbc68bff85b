"""Checks of what the losses are given, before anything is computed."""

import math

import tensorflow as tf

from tf_samtone.errors import InvalidInputError


def checked_temperature(temperature):
    """Returns the temperature as a float > 0.

    Raises:
        InvalidInputError: if it is not a finite number above 0.
    """
    try:
        value = float(temperature)
    except (TypeError, ValueError):
        value = math.nan
    if not 0.0 < value < math.inf:
        raise InvalidInputError(
            "Expected `temperature` > 0, a finite number. Received: "
            f"temperature={temperature!r}. Pass a positive float; the papers "
            "use 0.01."
        )
    return value


def checked_embeddings(name, value):
    """Returns float32 `[batch, dim]`, or raises `InvalidInputError`."""
    value = tf.cast(value, tf.float32)
    if value.shape.rank != 2:
        raise InvalidInputError(
            f"Expected `{name}` of shape [batch, dim]. Received: "
            f"shape={tuple(value.shape)}. Pass one vector per example."
        )
    return value


def check_pairs(queries, documents):
    """Raises `InvalidInputError` unless row i can answer row i."""
    if not queries.shape.is_compatible_with(documents.shape):
        raise InvalidInputError(
            "Expected `queries` and `documents` of the same shape [batch, dim],"
            f" row i of one answering row i of the other. Received: queries "
            f"{tuple(queries.shape)}, documents {tuple(documents.shape)}. Pass "
            "other documents as `hard_negatives`."
        )


def checked_columns(queries, documents, all_queries, all_documents):
    """Returns the global batch as float32, and whether it was given.

    Without a global batch the local one stands for it.

    Raises:
        InvalidInputError: if only one side is given, or shapes do not fit.
    """
    if (all_queries is None) != (all_documents is None):
        given = "all_queries" if all_documents is None else "all_documents"
        raise InvalidInputError(
            "Expected `all_queries` and `all_documents` together. Received: "
            f"`{given}` alone. Gather both sides, or neither."
        )
    if all_queries is None:
        return queries, documents, False
    all_queries = checked_embeddings("all_queries", all_queries)
    all_documents = checked_embeddings("all_documents", all_documents)
    check_pairs(all_queries, all_documents)
    if not all_queries.shape[1:].is_compatible_with(queries.shape[1:]):
        raise InvalidInputError(
            f"Expected `all_queries` of shape [columns, {queries.shape[1]}], "
            f"as wide as `queries`. Received: shape={tuple(all_queries.shape)}."
            " Gather the same embeddings."
        )
    return all_queries, all_documents, True


def checked_ids(kinds, queries, all_queries, is_gathered):
    """Returns the ids of rows and of columns, a list of int64 vectors each.

    Args:
        kinds: dict of argument name to its pair (local ids, gathered ids);
            a kind without local ids is left out.
        queries: float32 `[rows, dim]`.
        all_queries: float32 `[columns, dim]`.
        is_gathered: bool. Whether the columns are other rows than the local.

    Raises:
        InvalidInputError: if ids are floats, misshapen, or not gathered.
    """
    row_ids, column_ids = [], []
    for name, (local, gathered) in kinds.items():
        if local is None:
            continue
        if gathered is None and is_gathered:
            raise InvalidInputError(
                f"Expected `all_{name}` with `{name}` and `all_queries`. "
                f"Received: all_{name}=None. Gather the ids as well."
            )
        gathered = local if gathered is None else gathered
        row_ids.append(_id_vector(name, local, queries))
        column_ids.append(_id_vector(f"all_{name}", gathered, all_queries))
    return row_ids, column_ids


def checked_hard_negatives(hard_negatives, mask, anchors):
    """Returns float32 `[columns, k, dim]` and bool `[columns, k]`.

    Raises:
        InvalidInputError: if the shapes do not fit together.
    """
    hard_negatives = tf.cast(hard_negatives, tf.float32)
    dim = anchors.shape[-1]
    if not hard_negatives.shape.is_compatible_with([None, None, dim]):
        raise InvalidInputError(
            f"Expected `hard_negatives` of shape [batch, k, {dim}]. Received: "
            f"shape={tuple(hard_negatives.shape)}. Pass k vectors per example; "
            "pad and mask where there are fewer."
        )
    if mask is None:
        mask = tf.ones(tf.shape(hard_negatives)[:2], tf.bool)
    mask = tf.cast(mask, tf.bool)
    if not mask.shape.is_compatible_with(hard_negatives.shape[:2]):
        raise InvalidInputError(
            "Expected `hard_negative_mask` of shape "
            f"{tuple(hard_negatives.shape[:2])}, as `hard_negatives`. "
            f"Received: shape={tuple(mask.shape)}. Pass one flag per negative."
        )
    return hard_negatives, mask


def _id_vector(name, value, embeddings):
    value = tf.convert_to_tensor(value)
    if not value.dtype.is_integer:
        raise InvalidInputError(
            f"Expected `{name}` of an integer dtype. Received: "
            f"dtype={value.dtype.name}. Floats collide above 2**24; pass "
            "int64, e.g. from tf_samtone.text.fingerprint."
        )
    # This also refuses [batch, 1], which would broadcast.
    if not value.shape.is_compatible_with(embeddings.shape[:1]):
        raise InvalidInputError(
            f"Expected `{name}` of shape {tuple(embeddings.shape[:1])}, one id "
            f"per row. Received: shape={tuple(value.shape)}. Pass an id for "
            "each example."
        )
    return tf.cast(value, tf.int64)
