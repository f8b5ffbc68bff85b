"""Batches of query and document features for `model.fit`."""

from collections.abc import Hashable, Sequence

import tensorflow as tf

from tf_samtone.data._epoch_order import EpochOrder
from tf_samtone.data._token_store import TokenStore
from tf_samtone.errors import InvalidInputError
from tf_samtone.text import TextPreprocessor, fingerprint


def training_dataset(
    queries: Sequence[str],
    documents: Sequence[str],
    *,
    query_preprocessor: TextPreprocessor,
    document_preprocessor: TextPreprocessor,
    batch_size: int,
    seed: int = 0,
    epochs: int | None = None,
    shuffle: bool = True,
    group_ids: Sequence[Hashable] | None = None,
    start_step: int = 0,
) -> tf.data.Dataset:
    """Builds an endless or counted stream of training batches.

    Every distinct text is tokenized here, once (about 4 bytes per token kept
    in memory), so that a training step only gathers and pads integers. No
    Python runs per step.

    The order is a function of `seed`, the epoch and the position alone: the
    same arguments give the same batches in every process, each epoch has
    another order, and iterating the dataset again starts from the beginning.
    Each epoch leaves out the `len(queries) % batch_size` examples at its
    end, so all batches are full; with `shuffle` these are other examples
    each time.

    `group_ids` are a cheap source of hard in-batch negatives. Members of one
    group (questions about one disease, functions of one module) are laid
    side by side, so most of them meet in one batch, where each one's
    document is a negative for the others. Groups, the members of a group and
    the finished batches are shuffled every epoch. A group larger than a
    batch, or at the border of two, is divided.

    Args:
        queries: strings, row i belongs to `documents[i]`; may be empty.
        documents: strings, as many as `queries`.
        query_preprocessor: `TextPreprocessor` of the queries.
        document_preprocessor: `TextPreprocessor` of the documents.
        batch_size: int, pairs per batch, at most `len(queries)`.
        seed: int. Defaults to `0`.
        epochs: int, or `None` to repeat for ever. Defaults to `None`.
        shuffle: bool. `False` keeps the given order (with groups: the order
            in which groups first appear). Defaults to `True`.
        group_ids: one hashable per pair, or `None`. Defaults to `None`.
        start_step: int. Batches to leave out at the start; a resumed run
            passes the steps it has done. Costs no more than one epoch's
            order. Defaults to `0`.

    Returns:
        `tf.data.Dataset` of dicts: `"queries"` and `"documents"` hold
        `"token_ids"` and `"padding_mask"`, int32
        `[batch_size, sequence_length]`; `"query_ids"` and `"document_ids"`
        are the int64 `[batch_size]` fingerprints of the texts.

    Raises:
        InvalidInputError: if lengths differ, a row is not a string, there are
            fewer pairs than `batch_size`, or an option cannot be used.
    """
    _check_numbers(batch_size, epochs, start_step)
    _check_preprocessor("query_preprocessor", query_preprocessor)
    _check_preprocessor("document_preprocessor", document_preprocessor)
    query_ids = fingerprint(queries, name="queries")
    document_ids = fingerprint(documents, name="documents")
    _check_lengths(len(queries), len(documents), batch_size, group_ids)
    order = EpochOrder(
        len(queries),
        batch_size,
        seed=seed,
        shuffle=shuffle,
        group_ids=group_ids,
    )
    query_store = TokenStore(query_preprocessor, queries, "queries")
    document_store = TokenStore(document_preprocessor, documents, "documents")
    with tf.device("CPU:0"):
        ids = {
            "query_ids": tf.constant(query_ids),
            "document_ids": tf.constant(document_ids),
        }

    def features_of(rows: tf.Tensor) -> dict[str, tf.Tensor]:
        rows = tf.ensure_shape(rows, [batch_size])
        return {
            "queries": query_store.gather(rows),
            "documents": document_store.gather(rows),
            **{name: tf.gather(values, rows) for name, values in ids.items()},
        }

    return (
        _row_batches(order, epochs, start_step)
        .map(features_of, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def _row_batches(
    order: EpochOrder, epochs: int | None, start_step: int
) -> tf.data.Dataset:
    per_epoch = order.batches_per_epoch
    first_epoch, skipped = divmod(start_step, per_epoch)
    last_epoch = tf.int64.max if epochs is None else epochs
    cardinality = (
        tf.data.INFINITE_CARDINALITY
        if epochs is None
        else max(0, epochs * per_epoch - start_step)
    )
    return (
        tf.data.Dataset.range(min(first_epoch, last_epoch), last_epoch)
        .flat_map(
            lambda epoch: tf.data.Dataset.from_tensor_slices(
                order.batches(epoch)
            )
        )
        .skip(skipped)
        .apply(tf.data.experimental.assert_cardinality(cardinality))
    )


def _check_numbers(
    batch_size: int, epochs: int | None, start_step: int
) -> None:
    checks = (
        ("batch_size", batch_size, 1),
        ("epochs", 1 if epochs is None else epochs, 1),
        ("start_step", start_step, 0),
    )
    for name, value, least in checks:
        if not isinstance(value, int) or value < least:
            raise InvalidInputError(
                f"Expected `{name}` to be an int of at least {least}. "
                f"Received: {name}={value!r}. Pass a whole number."
            )


def _check_preprocessor(name: str, value: object) -> None:
    if not isinstance(value, TextPreprocessor):
        raise InvalidInputError(
            f"Expected `{name}` to be a tf_samtone.text.TextPreprocessor. "
            f"Received: {name}={value!r}. Take it from the model, e.g. "
            f"model.{name}."
        )


def _check_lengths(
    num_queries: int,
    num_documents: int,
    batch_size: int,
    group_ids: Sequence[Hashable] | None,
) -> None:
    if num_queries != num_documents:
        raise InvalidInputError(
            "Expected as many documents as queries, row i answering row i. "
            f"Received: {num_queries} queries, {num_documents} documents. "
            "Repeat a document for each of its queries."
        )
    if batch_size > num_queries:
        raise InvalidInputError(
            f"Expected at least `batch_size` pairs. Received: "
            f"batch_size={batch_size}, {num_queries} pairs. Lower batch_size "
            "or give more pairs."
        )
    if group_ids is not None and len(group_ids) != num_queries:
        raise InvalidInputError(
            "Expected one entry of `group_ids` per pair. Received: "
            f"{len(group_ids)} entries, {num_queries} pairs. Pass a list of "
            "that length, or None."
        )
