"""Hard negatives, padded last batches, buckets and unique texts."""

import itertools
import logging

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import training_dataset
from tf_samtone.errors import InvalidInputError
from tf_samtone.text import fingerprint

QUERIES = [f"the cat number {i}" for i in range(23)]
DOCUMENTS = [f"{'dog ' * (i % 9)}{i}" for i in range(23)]
NEGATIVES = [[f"bird {i} {j}" for j in range(i % 4)] for i in range(23)]
ROW_OF = {value: row for row, value in enumerate(fingerprint(QUERIES))}


@pytest.fixture
def build(query_preprocessor, document_preprocessor):
    def make(queries=QUERIES, documents=DOCUMENTS, **options):
        options = {"batch_size": 4, "epochs": 1, **options}
        return training_dataset(
            queries,
            documents,
            query_preprocessor=query_preprocessor,
            document_preprocessor=document_preprocessor,
            **options,
        )

    return make


def batches_of(dataset):
    return list(dataset.as_numpy_iterator())


def rows_of(batch):
    return [ROW_OF[i] for i in batch["query_ids"]]


def test_hard_negatives_have_static_shapes(build):
    spec = build(hard_negatives=NEGATIVES).element_spec

    assert spec["hard_negatives"] == {
        "token_ids": tf.TensorSpec([4, 3, 10], tf.int32),
        "padding_mask": tf.TensorSpec([4, 3, 10], tf.int32),
    }
    assert spec["hard_negative_mask"] == tf.TensorSpec([4, 3], tf.int32)
    assert spec["hard_negative_ids"] == tf.TensorSpec([4, 3], tf.int64)


@pytest.mark.parametrize("feature", ["token_ids", "padding_mask"])
def test_hard_negatives_belong_to_their_pair(
    build, document_preprocessor, feature
):
    batch = batches_of(build(hard_negatives=NEGATIVES))[0]

    texts = [(NEGATIVES[row] + [""] * 3)[:3] for row in rows_of(batch)]
    expected = document_preprocessor(sum(texts, []))[feature]
    np.testing.assert_array_equal(
        batch["hard_negatives"][feature].reshape(12, 10), expected
    )


def test_hard_negatives_are_masked_and_named(build):
    for batch in batches_of(build(hard_negatives=NEGATIVES)):
        for row, mask, ids in zip(
            rows_of(batch),
            batch["hard_negative_mask"],
            batch["hard_negative_ids"],
            strict=True,
        ):
            count = row % 4
            assert mask.tolist() == [1] * count + [0] * (3 - count)
            assert ids[:count].tolist() == fingerprint(NEGATIVES[row]).tolist()
            assert not ids[count:].any()


def test_documents_are_the_same_with_hard_negatives(build):
    plain = batches_of(build())
    richer = batches_of(build(hard_negatives=NEGATIVES))

    for one, other in zip(plain, richer, strict=True):
        np.testing.assert_array_equal(
            one["documents"]["token_ids"], other["documents"]["token_ids"]
        )


def test_a_padded_epoch_holds_every_pair_once(build):
    batches = batches_of(build(last_batch="pad"))

    rows = [
        [row for row, v in zip(rows_of(b), b["is_valid"], strict=True) if v]
        for b in batches
    ]
    assert [len(batch) for batch in rows] == [4] * 5 + [3]
    assert sorted(itertools.chain(*rows)) == list(range(23))


def test_a_padded_batch_repeats_rows_of_the_epoch(build):
    batches = batches_of(build(last_batch="pad"))

    assert batches[-1]["is_valid"].tolist() == [1, 1, 1, 0]
    assert batches[-1]["query_ids"][3] == batches[0]["query_ids"][0]


def test_padding_keeps_the_full_batches(build):
    dropped = [rows_of(b) for b in batches_of(build())]
    padded = [rows_of(b) for b in batches_of(build(last_batch="pad"))]

    assert padded[:5] == dropped


def test_a_padded_dataset_is_static_and_counted(build):
    dataset = build(last_batch="pad", epochs=2, start_step=1)

    assert dataset.element_spec["is_valid"] == tf.TensorSpec([4], tf.int32)
    assert dataset.cardinality() == 11


def test_no_batch_is_short_when_the_size_divides(build):
    batches = batches_of(build(QUERIES[:20], DOCUMENTS[:20], last_batch="pad"))

    assert [batch["is_valid"].sum() for batch in batches] == [4] * 5


def test_padding_goes_last_with_groups_too(build):
    dataset = build(last_batch="pad", group_ids=[i % 3 for i in range(23)])

    valid = [batch["is_valid"].sum() for batch in batches_of(dataset)]
    assert valid == [4] * 5 + [3]


def test_a_batch_has_the_smallest_bucket_that_holds_it(build):
    options = {"query_buckets": (2, 5), "document_buckets": [4, 7]}
    for batch in batches_of(build(**options)):
        for side, lengths in (
            ("queries", (2, 5, 6)),
            ("documents", (4, 7, 10)),
        ):
            mask = batch[side]["padding_mask"]
            longest = mask.sum(axis=1).max()

            expected = min(x for x in lengths if x >= longest)
            assert mask.shape == (4, expected)


def test_buckets_cut_only_padding(build):
    padded = batches_of(build(hard_negatives=NEGATIVES))
    cut = batches_of(build(hard_negatives=NEGATIVES, document_buckets=(2, 6)))

    for one, other in zip(padded, cut, strict=True):
        for side in ("documents", "hard_negatives"):
            length = other[side]["token_ids"].shape[-1]
            for name in ("token_ids", "padding_mask"):
                np.testing.assert_array_equal(
                    one[side][name][..., :length], other[side][name]
                )
            assert not one[side]["padding_mask"][..., length:].any()


COPIES = [f"the cat number {i % 15}" for i in range(23)]


def test_unique_texts_keep_copies_out_of_a_batch(build):
    batches = batches_of(build(COPIES, epochs=3, unique_texts=True))

    assert len(batches) == 15
    assert all(len(set(batch["query_ids"])) == 4 for batch in batches)


def test_unique_epochs_differ_and_use_a_pair_once(build):
    batches = batches_of(build(COPIES, epochs=2, unique_texts=True))
    ids = [b["document_ids"].tolist() for b in batches]

    assert ids[:5] != ids[5:]
    assert len(set(itertools.chain(*ids[:5]))) == 20


def test_what_no_unique_batch_could_take_fills_a_last_one(build):
    # One query is in 12 of 23 pairs: with 11 others they fill three batches
    # of four without a copy, and no fourth.
    queries = [f"the cat number {min(i, 11)}" for i in range(23)]
    batches = batches_of(build(queries, unique_texts=True, last_batch="pad"))

    assert [batch["is_valid"].sum() for batch in batches[:-1]] == [4] * 3
    ids = batches[-1]["query_ids"][batches[-1]["is_valid"] == 1]
    assert len(ids) == len(set(ids)) > 0


def test_the_log_counts_what_unique_batches_leave_out(build, caplog):
    with caplog.at_level(logging.INFO, "tf_samtone"):
        build(COPIES, unique_texts=True)

    assert "5 full batches of 4 per epoch; 3 of 23 pairs" in caplog.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hard_negatives": [["a"]]}, "1 lists, 23 pairs"),
        ({"hard_negatives": ["a"] * 23}, r"hard_negatives\[0\] of type str"),
        ({"hard_negatives": "a"}, "Received: str"),
        ({"hard_negatives": [[]] * 23}, "23 empty lists"),
        ({"hard_negatives": [[1]] * 23}, r"\[0\]=1"),
        ({"last_batch": "keep"}, "last_batch='keep'"),
        ({"query_buckets": ()}, r"query_buckets=\(\)"),
        ({"query_buckets": (3, 2)}, r"query_buckets=\(3, 2\)"),
        ({"document_buckets": (4, 11)}, r"from 1 to 10.*\(4, 11\)"),
        ({"document_buckets": 4}, "document_buckets=4"),
        ({"queries": ["a"] * 23, "unique_texts": True}, "unique_texts=False"),
    ],
    ids=[
        "too_few_lists",
        "text_in_place_of_a_list",
        "one_text",
        "all_empty",
        "not_a_string",
        "unknown_last_batch",
        "no_bucket",
        "descending_buckets",
        "bucket_too_long",
        "int_bucket",
        "one_text_for_all",
    ],
)
def test_bad_options_are_refused(build, options, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**options)
