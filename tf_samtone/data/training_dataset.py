"""Batches of query and document features for `model.fit`."""

from collections.abc import Hashable, Mapping, Sequence

import tensorflow as tf

from tf_samtone.data._batch_features import BatchFeatures
from tf_samtone.data._checks import check_int, check_order
from tf_samtone.data._hard_negatives import HardNegatives
from tf_samtone.data._layout_options import LayoutOptions
from tf_samtone.data._pair_order import PairOrder, pair_order
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
    hard_negatives: Sequence[Sequence[str]] | None = None,
    last_batch: str = "drop",
    unique_texts: bool = False,
    query_buckets: Sequence[int] | None = None,
    document_buckets: Sequence[int] | None = None,
    packing: str | None = None,
    packing_groups: int = 1,
    query_row_length: int | None = None,
    document_row_length: int | None = None,
    row_multiple: int = 2,
    rows: Mapping[str, int] | None = None,
) -> tf.data.Dataset:
    """Builds an endless or counted stream of training batches.

    Every distinct text is tokenized here, once (about 4 bytes per token kept
    in memory), so that a training step only gathers and lays out integers.
    No Python runs per step.

    The order is a function of `seed`, the epoch and the position alone: the
    same arguments give the same batches in every process and for any number
    of threads, each epoch has another order, and iterating the dataset again
    starts from the beginning. Each epoch leaves out the
    `len(queries) % batch_size` examples at its end, so all batches are full;
    with `shuffle` these are other examples each time. `batch_rows` tells
    which pairs a step holds.

    `group_ids` are a cheap source of hard in-batch negatives. Members of one
    group (questions about one disease, functions of one module) are laid
    side by side, so most of them meet in one batch, where each one's
    document is a negative for the others. Groups, the members of a group and
    the finished batches are shuffled every epoch. A group larger than a
    batch, or at the border of two, is divided. With lengths as groups, e.g.
    `[len(text) // 200 for text in documents]`, batches hold texts of like
    length, for which buckets waste less; negatives then are of like length
    too, so that length tells the model nothing.

    `unique_texts` keeps copies of a query or a document out of a batch. A
    row whose text is in its batch already moves to the next one with room.
    All epochs have equally many batches, and only the remainder is left out,
    unless one text is in more than `1 / batch_size` of the pairs: then as
    many of its copies are used as there are batches, others every epoch. The
    log says how many pairs are left out. This is one NumPy call per epoch,
    made while the epoch before runs.

    `packing="rows"` puts several examples into each row, so that nearly all
    places hold tokens (see `pack_rows`). The default row lengths were chosen
    on medical questions (MedQuAD, 64 pairs, queries of up to 32 tokens,
    documents of up to 256): longer document rows waste a little less, but
    attention costs more in them. The fewer examples a group has, the more is
    wasted.

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
        hard_negatives: one list of documents per pair, which do not answer
            its query; lists may differ in length. Defaults to `None`.
        last_batch: `"drop"`, or `"pad"` to keep the short last batch of each
            epoch. It is filled with other rows, which `"is_valid"` marks
            with 0. Defaults to `"drop"`.
        unique_texts: bool. Defaults to `False`.
        query_buckets: ascending ints. Every batch is padded to the first of
            these lengths that holds its longest query, or else to the
            preprocessor's; `None` pads to the latter always. Defaults to
            `None`.
        document_buckets: the same for documents and hard negatives.
        packing: `"rows"`, or `None` for one example per row. Defaults to
            `None`.
        packing_groups: int. The batch is packed as so many equal parts, for
            replicas and micro-batches; the pairs of a batch are dealt so that
            the parts have about equally many document tokens. Of no effect
            without packing. Defaults to `1`.
        query_row_length: int, tokens per packed row. Defaults to twice the
            queries' `sequence_length`.
        document_row_length: int, tokens per packed row, also of the hard
            negatives. Defaults to the documents' `sequence_length`.
        row_multiple: int. Packed rows per group are a multiple of it; larger
            ones give fewer shapes and more padding. Defaults to `2`.
        rows: dict of int, keys `"queries"`, `"documents"` and (with hard
            negatives) `"hard_negatives"`. Fixed numbers of packed rows per
            group, so that the shapes are static; a batch that does not fit
            is an error. Defaults to `None`.

    Returns:
        `tf.data.Dataset` of dicts: `"queries"` and `"documents"` hold
        `"token_ids"` and `"padding_mask"`, int32
        `[batch_size, sequence_length]` (packed: what `pack_rows` returns);
        `"query_ids"` and `"document_ids"` are the int64 `[batch_size]`
        fingerprints of the texts. With `last_batch="pad"` also `"is_valid"`,
        int32 `[batch_size]`. With `hard_negatives`, k the longest list, also
        `"hard_negatives"`, the same as documents with the axes `[batch_size,
        k]` in front (packed: `"lengths"` only; example `b * k + j` of the
        batch is negative j of pair b), `"hard_negative_mask"`, int32
        `[batch_size, k]`, and `"hard_negative_ids"`, int64 `[batch_size, k]`.

    Raises:
        InvalidInputError: if lengths differ, a row is not a string, there are
            fewer pairs than `batch_size`, batches without copies cannot be
            made, or an option cannot be used.
    """
    preprocessors = {
        "queries": query_preprocessor,
        "documents": document_preprocessor,
    }
    _check_start(epochs, start_step)
    _check_preprocessor("query_preprocessor", query_preprocessor)
    _check_preprocessor("document_preprocessor", document_preprocessor)
    query_ids = fingerprint(queries, name="queries")
    document_ids = fingerprint(documents, name="documents")
    _check_lengths(len(queries), len(documents))
    check_order(len(queries), batch_size, group_ids, last_batch)
    layouts = LayoutOptions(
        query_buckets=query_buckets,
        document_buckets=document_buckets,
        packing=packing,
        packing_groups=packing_groups,
        query_row_length=query_row_length,
        document_row_length=document_row_length,
        row_multiple=row_multiple,
        rows=rows,
    ).layouts(preprocessors, batch_size)
    negatives = (
        None
        if hard_negatives is None
        else HardNegatives(hard_negatives, len(queries))
    )
    order = pair_order(
        len(queries),
        batch_size,
        seed=seed,
        shuffle=shuffle,
        group_ids=group_ids,
        last_batch=last_batch,
        unique_ids=(query_ids, document_ids) if unique_texts else None,
    )
    features_of = BatchFeatures(
        queries,
        documents,
        negatives,
        query_ids=query_ids,
        document_ids=document_ids,
        preprocessors=preprocessors,
        layouts=layouts,
        batch_size=batch_size,
        groups=1 if packing is None else packing_groups,
        marks_padding=last_batch == "pad",
    )
    return (
        _row_batches(order, epochs, start_step)
        .map(
            features_of, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        .prefetch(tf.data.AUTOTUNE)
    )


def _row_batches(
    order: PairOrder, epochs: int | None, start_step: int
) -> tf.data.Dataset:
    per_epoch = order.batches_per_epoch
    first_epoch, skipped = divmod(start_step, per_epoch)
    last_epoch = tf.int64.max if epochs is None else epochs
    cardinality = (
        tf.data.INFINITE_CARDINALITY
        if epochs is None
        else max(0, epochs * per_epoch - start_step)
    )
    orders = tf.data.Dataset.range(min(first_epoch, last_epoch), last_epoch)
    return (
        orders.map(order.batches)
        # An epoch's order is ready before the last one ends.
        .prefetch(1)
        .flat_map(tf.data.Dataset.from_tensor_slices)
        .skip(skipped)
        .apply(tf.data.experimental.assert_cardinality(cardinality))
    )


def _check_start(epochs: int | None, start_step: int) -> None:
    check_int("epochs", 1 if epochs is None else epochs, 1)
    check_int("start_step", start_step, 0)


def _check_preprocessor(name: str, value: object) -> None:
    if not isinstance(value, TextPreprocessor):
        raise InvalidInputError(
            f"Expected `{name}` to be a tf_samtone.text.TextPreprocessor. "
            f"Received: {name}={value!r}. Take it from the model, e.g. "
            f"model.{name}."
        )


def _check_lengths(num_queries: int, num_documents: int) -> None:
    if num_queries != num_documents:
        raise InvalidInputError(
            "Expected as many documents as queries, row i answering row i. "
            f"Received: {num_queries} queries, {num_documents} documents. "
            "Repeat a document for each of its queries."
        )
