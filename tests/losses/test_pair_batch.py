"""What a loss is told of a batch, checked and completed."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses.pair_batch import PairBatch


def vectors(*shape, dtype=np.float32):
    return np.arange(np.prod(shape), dtype=dtype).reshape(shape)


def pairs(rows=3, **options):
    return PairBatch.checked(vectors(rows, 2), -vectors(rows, 2), **options)


GATHERED = {"all_queries": vectors(6, 2), "all_documents": -vectors(6, 2)}
HARD = {"hard_negatives": vectors(3, 2, 2)}


def test_the_local_batch_stands_for_the_global():
    batch = pairs(query_ids=[1, 2, 3])
    np.testing.assert_array_equal(batch.all_queries, vectors(3, 2))
    np.testing.assert_array_equal(batch.all_documents, -vectors(3, 2))
    np.testing.assert_array_equal(batch.column_ids[0], [1, 2, 3])
    assert batch.row_index.numpy().tolist() == [0, 1, 2]
    assert not batch.is_gathered


@pytest.mark.parametrize("offset", [2, np.int64(2)], ids=["int", "int64"])
def test_the_offset_places_the_rows_in_the_global_batch(offset):
    batch = pairs(row_offset=offset, **GATHERED)
    assert batch.row_index.numpy().tolist() == [2, 3, 4]
    assert batch.is_gathered


@pytest.mark.parametrize("side", ["query", "document"])
def test_the_own_column_of_a_shifted_row_is_no_negative(side):
    batch = pairs(row_offset=2, **GATHERED)
    for block in batch.other_tower_block(side), batch.same_tower_block(side):
        mask = block.mask(0, None).numpy()
        assert np.argwhere(~mask).tolist() == [[0, 2], [1, 3], [2, 4]]


@pytest.mark.parametrize(
    ("side", "other", "same"), [("query", -1, 1), ("document", 1, -1)]
)
def test_blocks_hold_the_tower_they_are_named_for(side, other, same):
    batch = pairs()
    actual = batch.other_tower_block(side).columns
    np.testing.assert_array_equal(actual, other * vectors(3, 2))
    actual = batch.same_tower_block(side).columns
    np.testing.assert_array_equal(actual, same * vectors(3, 2))
    anchors, positives = batch.sides(side)
    np.testing.assert_array_equal(anchors, same * vectors(3, 2))
    np.testing.assert_array_equal(positives, other * vectors(3, 2))


def test_hard_negatives_are_columns_in_the_order_of_the_examples():
    # n_jk at column j * k + k, whatever the number of replicas.
    hard = pairs(**HARD).hard_block()
    np.testing.assert_array_equal(hard.columns, vectors(6, 2))
    mask = pairs(**HARD).hard_block("own").mask(0, None)
    assert mask.numpy().astype(int).tolist() == [
        [1, 1, 0, 0, 0, 0],
        [0, 0, 1, 1, 0, 0],
        [0, 0, 0, 0, 1, 1],
    ]


def test_own_hard_negatives_of_shifted_rows_are_theirs():
    batch = pairs(
        rows=2, row_offset=3, hard_negatives=vectors(6, 1, 2), **GATHERED
    )
    mask = batch.hard_block("own").mask(0, None).numpy()
    assert np.argwhere(mask).tolist() == [[0, 3], [1, 4]]


def test_a_hard_negative_that_is_the_rows_document_is_none():
    batch = pairs(
        document_ids=[1, 2, 3],
        hard_negative_ids=[[2, 9], [9, 3], [1, 1]],
        **HARD,
    )
    mask = batch.hard_block().mask(0, None)
    assert mask.numpy().astype(int).tolist() == [
        [1, 1, 1, 1, 0, 0],
        [0, 1, 1, 1, 1, 1],
        [1, 1, 1, 0, 1, 1],
    ]


@pytest.mark.parametrize("ids", [{}, {"query_ids": [1, 1, 1]}])
def test_hard_negatives_are_masked_by_document_ids_only(ids):
    batch = pairs(document_ids=[4, 5, 6], **ids, **HARD)
    assert batch.hard_block().mask(0, None).numpy().all()


def test_ids_are_ignored_without_masking():
    batch = pairs(
        query_ids=[1, 1, 1],
        document_ids=[1, 1, 1],
        hard_negative_ids=[[1, 1]] * 3,
        mask_duplicates=False,
        **HARD,
    )
    assert batch.other_tower_block("query").mask(0, None).numpy().sum() == 6
    assert batch.hard_block().mask(0, None).numpy().all()


def test_padding_loses_its_values_and_its_hard_negatives():
    queries, hard = vectors(3, 2), vectors(3, 2, 2)
    queries[1], hard[1] = np.nan, np.inf
    batch = PairBatch.checked(
        queries, queries, hard_negatives=hard, is_valid=[True, False, True]
    )
    for tensor in (
        batch.queries,
        batch.documents,
        batch.all_queries,
        batch.all_documents,
        batch.hard_negatives,
    ):
        assert np.isfinite(tensor).all()
    mask = batch.hard_block().mask(0, None).numpy()
    assert mask.astype(int).tolist() == [[1, 1, 0, 0, 1, 1]] * 3
    assert batch.num_examples().numpy() == 2


@pytest.mark.parametrize("count", [0, 2], ids=["k = 0", "k = 2"])
def test_no_hard_negatives_may_be_given_in_a_batch_of_unknown_size(count):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2]),
            tf.TensorSpec([None, None, 2]),
        ]
    )
    def mask(queries, hard_negatives):
        batch = PairBatch.checked(
            queries, queries, hard_negatives=hard_negatives
        )
        return batch.hard_block("own").mask(0, None)

    actual = mask(vectors(3, 2), vectors(3, count, 2)).numpy()
    np.testing.assert_array_equal(
        actual, np.repeat(np.eye(3, dtype=bool), count, axis=1)
    )


@pytest.mark.parametrize(
    ("queries", "documents", "expected"),
    [
        ("float32", "float32", "float32"),
        ("bfloat16", "bfloat16", "float32"),
        ("float16", "float32", "float32"),
        ("float64", "float64", "float64"),
        ("float64", "float32", "float64"),
        ("float32", "float64", "float64"),
    ],
)
def test_embeddings_are_computed_with_in_32_bits_or_more(
    queries, documents, expected
):
    batch = PairBatch.checked(
        tf.cast(vectors(3, 2), queries),
        tf.cast(vectors(3, 2), documents),
        hard_negatives=tf.cast(vectors(6, 1, 2), tf.bfloat16),
        all_queries=tf.cast(vectors(6, 2), tf.float32),
        all_documents=tf.cast(vectors(6, 2), tf.bfloat16),
    )
    dtypes = {
        batch.queries.dtype,
        batch.documents.dtype,
        batch.all_queries.dtype,
        batch.all_documents.dtype,
        batch.hard_negatives.dtype,
    }
    assert dtypes == {tf.as_dtype(expected)}


BAD_INPUTS = {
    "rank": (
        {"queries": vectors(3)},
        r"`queries` of shape \[batch, dim\].*shape=\[3\].*one vector per",
    ),
    "rows": (
        {"documents": vectors(4, 2)},
        r"same shape.*queries \[3, 2\], documents \[4, 2\].*Pass other",
    ),
    "width": ({"documents": vectors(3, 4)}, "same shape"),
    "float ids": (
        {"query_ids": [1.0, 2.0, 3.0]},
        "`query_ids` of an integer dtype.*float32.*int64",
    ),
    "column of ids": ({"query_ids": [[1], [2], [3]]}, "one id per row"),
    "too few ids": (
        {"document_ids": [1, 2]},
        r"`document_ids` of shape \[3\].*shape=\[2\].*one id per row",
    ),
    "one side gathered": (
        {"all_queries": vectors(6, 2)},
        "together.*`all_queries` alone",
    ),
    "other side gathered": (
        {"all_documents": vectors(6, 2)},
        "together.*`all_documents` alone",
    ),
    "gathered rows": (
        {"all_queries": vectors(6, 2), "all_documents": vectors(5, 2)},
        "`all_queries` and `all_documents` of the same",
    ),
    "gathered width": (
        {"all_queries": vectors(6, 4), "all_documents": vectors(6, 4)},
        "as wide as",
    ),
    "ids not gathered": (
        {**GATHERED, "query_ids": [1, 2, 3]},
        "`all_query_ids` with.*Gather the ids",
    ),
    "only gathered ids": (
        {**GATHERED, "all_query_ids": range(6)},
        "`query_ids` with `all_query_ids`.*local rows",
    ),
    "gathered float ids": (
        {
            **GATHERED,
            "query_ids": [1, 2, 3],
            "all_query_ids": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        },
        "`all_query_ids` of an integer",
    ),
    "an offset without the global batch": (
        {"row_offset": 3},
        r"`row_offset` in \[0, 0\].*row_offset=3.*`all_queries`",
    ),
    "an offset too far": (
        {**GATHERED, "row_offset": 4},
        r"`row_offset` in \[0, 3\]: 3 local rows among 6",
    ),
    "a negative offset": ({**GATHERED, "row_offset": -1}, "row_offset=-1"),
    "rank of hard negatives": (
        {"hard_negatives": vectors(3, 2)},
        r"\[batch, k, dim\] = \[3, k, 2\].*shape=\[3, 2\]",
    ),
    "width of hard negatives": (
        {"hard_negatives": vectors(3, 1, 5)},
        r"\[3, k, 2\].*shape=\[3, 1, 5\]",
    ),
    "rows of hard negatives": (
        {"hard_negatives": vectors(2, 1, 2)},
        r"\[3, k, 2\].*global batch",
    ),
    "shape of the hard negative mask": (
        {**HARD, "hard_negative_mask": np.ones([3, 1], bool)},
        r"`hard_negative_mask` of shape \[3, 2\].*per hard negative",
    ),
    "a hard negative mask alone": (
        {"hard_negative_mask": np.ones([3, 1], bool)},
        "`hard_negatives` with `hard_negative_mask`",
    ),
    "hard negative ids alone": (
        {"hard_negative_ids": np.ones([3, 1], int)},
        "`hard_negatives` with `hard_negative_ids`",
    ),
    "hard negative ids without document ids": (
        {**HARD, "hard_negative_ids": np.ones([3, 2], int)},
        "`document_ids` with `hard_negative_ids`",
    ),
    "float hard negative ids": (
        {
            **HARD,
            "document_ids": [1, 2, 3],
            "hard_negative_ids": np.ones([3, 2]),
        },
        "`hard_negative_ids` of an integer",
    ),
    "shape of the hard negative ids": (
        {
            **HARD,
            "document_ids": [1, 2, 3],
            "hard_negative_ids": np.ones([3], int),
        },
        r"`hard_negative_ids` of shape \[3, 2\]",
    ),
    "shape of positives": (
        {"positives": np.ones([3, 1], bool)},
        r"`positives` of shape \[3, 3\].*one column per example",
    ),
    "positives of the local rows only": (
        {**GATHERED, "positives": np.ones([3, 3], bool)},
        r"`positives` of shape \[3, 6\]",
    ),
    "shape of the flags": (
        {"is_valid": np.ones([3, 1], bool)},
        r"`is_valid` of shape \[3\].*one flag per row",
    ),
    "flags not gathered": (
        {**GATHERED, "is_valid": [True] * 3},
        "`is_valid` alone.*Gather the flags",
    ),
    "only gathered flags": (
        {**GATHERED, "all_is_valid": [True] * 6},
        "`all_is_valid` alone",
    ),
}


@pytest.mark.parametrize(
    ("arguments", "message"), BAD_INPUTS.values(), ids=BAD_INPUTS
)
def test_inputs_that_do_not_fit_are_refused(arguments, message):
    good = {"queries": vectors(3, 2), "documents": vectors(3, 2)}
    with pytest.raises(InvalidInputError, match=message):
        PairBatch.checked(**{**good, **arguments})


def test_unknown_rank_is_refused():
    @tf.function(input_signature=[tf.TensorSpec(None)], autograph=False)
    def graph(queries):
        return PairBatch.checked(queries, queries).queries

    with pytest.raises(InvalidInputError, match="shape=unknown"):
        graph.get_concrete_function()
