"""Checks of what the losses are given, before anything is computed."""

import math
import numbers

import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses.learned_temperature import LearnedTemperature


def checked_temperature(temperature):
    """Returns the temperature as a float > 0, or as the layer it is.

    Raises:
        InvalidInputError: if it is not a finite number above 0; a variable is
            not one, since its value would be read once and never trained.
    """
    if isinstance(temperature, LearnedTemperature):
        return temperature
    is_number = isinstance(temperature, numbers.Real)
    if not is_number or not 0.0 < temperature < math.inf:
        raise InvalidInputError(
            "Expected `temperature` > 0, a finite number. Received: "
            f"temperature={temperature!r}. Pass a positive float (the papers "
            "use 0.01), or LearnedTemperature() to train it."
        )
    return float(temperature)


def check_choice(name, value, choices):
    """Raises `InvalidInputError` unless the value is one of the choices."""
    if value not in choices:
        raise InvalidInputError(
            f"Expected `{name}` to be one of {tuple(choices)}. Received: "
            f"{name}={value!r}. Choose one of them."
        )


def check_given(name, value):
    """Raises `InvalidInputError` for `None`."""
    if value is None:
        raise InvalidInputError(
            f"Expected `{name}` with `hard_negative_ids`, which are compared "
            f"with them. Received: {name}=None. Pass both."
        )


def check_directions(same_tower, bidirectional):
    """Raises `InvalidInputError` for a side whose direction is left out."""
    if same_tower in ("document", "both") and not bidirectional:
        raise InvalidInputError(
            "Expected `bidirectional=True` with same-tower negatives on the "
            f"document side. Received: same_tower={same_tower!r}, "
            "bidirectional=False. The document side belongs to the "
            "document-to-query direction."
        )


def check_number(
    name, value, *, least=None, above=None, below=None, at_most=None
):
    """Raises `InvalidInputError` unless the number is in its range."""
    limits = {
        ">=": (least, lambda v, bound: v >= bound),
        ">": (above, lambda v, bound: v > bound),
        "<": (below, lambda v, bound: v < bound),
        "<=": (at_most, lambda v, bound: v <= bound),
    }
    known = {k: v for k, v in limits.items() if v[0] is not None}
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    is_finite = is_number and math.isfinite(value)
    if not is_finite or not all(ok(value, b) for b, ok in known.values()):
        text = " and ".join(f"{sign} {b}" for sign, (b, _) in known.items())
        raise InvalidInputError(
            f"Expected `{name}` to be a finite number {text}".rstrip()
            + f". Received: {name}={value!r}. Correct it."
        )


def check_whole(name, value):
    """Raises `InvalidInputError` unless the value is an int above 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidInputError(
            f"Expected `{name}` to be an int above 0. Received: "
            f"{name}={value!r}. Pass None to have it chosen."
        )


def check_unused(loss, advice, **defaults):
    """Raises `InvalidInputError` for an option that a loss would ignore.

    Args:
        loss: the loss, with one attribute per option.
        advice: str. What to do instead.
        **defaults: option name to the only value that it may have.
    """
    for name, default in defaults.items():
        value = getattr(loss, name)
        if value != default:
            raise InvalidInputError(
                f"Expected `{name}={default!r}`: {type(loss).__name__} has no "
                f"other. Received: {name}={value!r}. {advice}"
            )


def checked_pairs(queries, documents, prefix=""):
    """Returns two of float32 `[batch, dim]`; float64 if one of them is.

    Args:
        queries: float `[batch, dim]`.
        documents: float `[batch, dim]`.
        prefix: str. What the arguments' names start with.

    Raises:
        InvalidInputError: if row i cannot answer row i.
    """
    queries = _embeddings(f"{prefix}queries", queries)
    documents = _embeddings(f"{prefix}documents", documents)
    if not queries.shape.is_compatible_with(documents.shape):
        raise InvalidInputError(
            f"Expected `{prefix}queries` and `{prefix}documents` of the same "
            "shape [batch, dim], row i of one answering row i of the other. "
            f"Received: queries {_text(queries.shape)}, documents "
            f"{_text(documents.shape)}. Pass other documents as "
            "`hard_negatives`."
        )
    # Logits are never formed in fewer than 32 bits.
    is_double = tf.float64 in (queries.dtype, documents.dtype)
    dtype = tf.float64 if is_double else tf.float32
    return tf.cast(queries, dtype), tf.cast(documents, dtype)


def checked_columns(queries, documents, all_queries, all_documents):
    """Returns the global batch in the dtype of the local, and if it was given.

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
    all_queries, all_documents = checked_pairs(
        all_queries, all_documents, prefix="all_"
    )
    if not all_queries.shape[1:].is_compatible_with(queries.shape[1:]):
        raise InvalidInputError(
            f"Expected `all_queries` of shape [columns, {queries.shape[1]}], "
            f"as wide as `queries`. Received: shape={_text(all_queries.shape)}."
            " Gather the same embeddings."
        )
    all_queries = tf.cast(all_queries, queries.dtype)
    all_documents = tf.cast(all_documents, queries.dtype)
    return all_queries, all_documents, True


def check_row_offset(row_offset, queries, all_queries):
    """Raises `InvalidInputError` unless the local rows are among the columns.

    A wrong offset would leave each row's own column among its negatives.
    """
    offset = tf.get_static_value(row_offset)
    rows, columns = queries.shape[0], all_queries.shape[0]
    if offset is None or rows is None or columns is None:
        return
    if not 0 <= offset <= columns - rows:
        raise InvalidInputError(
            f"Expected `row_offset` in [0, {columns - rows}]: {rows} local rows"
            f" among {columns} columns. Received: row_offset={int(offset)}. "
            "Pass the global index of the first local row, with the global "
            "batch in `all_queries` and `all_documents`."
        )


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
        if local is None and gathered is None:
            continue
        if local is None:
            raise InvalidInputError(
                f"Expected `{name}` with `all_{name}`. Received: {name}=None. "
                "Pass the ids of the local rows as well."
            )
        if gathered is None and is_gathered:
            raise InvalidInputError(
                f"Expected `all_{name}` with `{name}` and `all_queries`. "
                f"Received: all_{name}=None. Gather the ids as well."
            )
        gathered = local if gathered is None else gathered
        row_ids.append(_id_vector(name, local, queries))
        column_ids.append(_id_vector(f"all_{name}", gathered, all_queries))
    return row_ids, column_ids


def checked_hard_negatives(hard_negatives, mask, ids, all_queries):
    """Returns vectors `[columns, k, dim]`, mask and ids `[columns, k]`.

    Returns `None` without hard negatives or for k = 0.

    Raises:
        InvalidInputError: if the shapes do not fit together, or a mask or ids
            come alone.
    """
    if hard_negatives is None:
        for name, value in (("mask", mask), ("ids", ids)):
            if value is not None:
                raise InvalidInputError(
                    f"Expected `hard_negatives` with `hard_negative_{name}`. "
                    "Received: hard_negatives=None. Pass the embeddings too."
                )
        return None
    hard_negatives = tf.convert_to_tensor(hard_negatives)
    columns, dim = all_queries.shape
    if not hard_negatives.shape.is_compatible_with([columns, None, dim]):
        raise InvalidInputError(
            "Expected `hard_negatives` of shape [batch, k, dim] = "
            f"[{columns}, k, {dim}]. Received: shape="
            f"{_text(hard_negatives.shape)}. Pass k vectors per example of the "
            "global batch; pad and mask where there are fewer."
        )
    hard_negatives = tf.cast(hard_negatives, all_queries.dtype)
    if hard_negatives.shape[1] == 0:
        return None
    shape = hard_negatives.shape[:2]
    if mask is None:
        mask = tf.ones(tf.shape(hard_negatives)[:2], tf.bool)
    mask = tf.cast(mask, tf.bool)
    advice = "Pass one value per hard negative."
    _check_shape("hard_negative_mask", mask, shape, advice)
    if ids is not None:
        ids = _integers("hard_negative_ids", ids)
        _check_shape("hard_negative_ids", ids, shape, advice)
    return hard_negatives, mask, ids


def checked_validity(is_valid, all_is_valid, queries, all_queries, is_gathered):
    """Returns bool `[rows]` and `[columns]`, or `None` twice.

    Raises:
        InvalidInputError: if a shape does not fit, or one is not gathered.
    """
    if is_valid is None and all_is_valid is None:
        return None, None
    if is_valid is None or (all_is_valid is None and is_gathered):
        raise InvalidInputError(
            "Expected `is_valid` and, with `all_queries`, `all_is_valid`. "
            f"Received: `{'all_' if is_valid is None else ''}is_valid` alone. "
            "Gather the flags as well."
        )
    is_valid = tf.cast(is_valid, tf.bool)
    all_is_valid = is_valid if all_is_valid is None else all_is_valid
    all_is_valid = tf.cast(all_is_valid, tf.bool)
    advice = "Pass one flag per row."
    _check_shape("is_valid", is_valid, queries.shape[:1], advice)
    _check_shape("all_is_valid", all_is_valid, all_queries.shape[:1], advice)
    return is_valid, all_is_valid


def checked_positives(positives, queries, all_queries):
    """Returns bool `[rows, columns]` or `None`.

    Raises:
        InvalidInputError: if the shape does not fit.
    """
    if positives is None:
        return None
    positives = tf.cast(positives, tf.bool)
    shape = [queries.shape[0], all_queries.shape[0]]
    advice = "Pass one row per local row, one column per example of the batch."
    _check_shape("positives", positives, tf.TensorShape(shape), advice)
    return positives


def _check_shape(name, value, shape, advice):
    # This also refuses [batch, 1], which would broadcast.
    if not value.shape.is_compatible_with(shape):
        raise InvalidInputError(
            f"Expected `{name}` of shape {_text(shape)}. Received: "
            f"shape={_text(value.shape)}. {advice}"
        )


def _embeddings(name, value):
    value = tf.convert_to_tensor(value)
    if value.shape.rank != 2:
        raise InvalidInputError(
            f"Expected `{name}` of shape [batch, dim]. Received: "
            f"shape={_text(value.shape)}. Pass one vector per example."
        )
    return value


def _text(shape):
    return "unknown" if shape.rank is None else str(shape.as_list())


def _integers(name, value):
    value = tf.convert_to_tensor(value)
    if not value.dtype.is_integer:
        raise InvalidInputError(
            f"Expected `{name}` of an integer dtype. Received: "
            f"dtype={value.dtype.name}. Floats collide above 2**24; pass "
            "int64, e.g. from tf_samtone.text.fingerprint."
        )
    return tf.cast(value, tf.int64)


def _id_vector(name, value, embeddings):
    value = _integers(name, value)
    _check_shape(name, value, embeddings.shape[:1], "Pass one id per row.")
    return value
