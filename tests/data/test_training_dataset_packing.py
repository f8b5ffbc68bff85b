"""Training batches whose texts share rows."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import training_dataset
from tf_samtone.errors import InvalidInputError
from tf_samtone.text import fingerprint

# From one to eight words, so from one to ten tokens.
QUERIES = [f"{'cat ' * (i % 3)}{i}" for i in range(24)]
DOCUMENTS = [f"{'dog ' * (i % 8)}{i}" for i in range(24)]
NEGATIVES = [[f"bird {i} {j}" for j in range(i % 3)] for i in range(24)]
ROW_OF = {value: row for row, value in enumerate(fingerprint(QUERIES))}


@pytest.fixture
def build(query_preprocessor, document_preprocessor):
    def make(**options):
        options = {"batch_size": 8, "epochs": 1, "packing": "rows", **options}
        return training_dataset(
            QUERIES,
            DOCUMENTS,
            query_preprocessor=query_preprocessor,
            document_preprocessor=document_preprocessor,
            **options,
        )

    return make


def rows_of(batch):
    return [ROW_OF[i] for i in batch["query_ids"]]


def examples_of(features, groups):
    """The tokens of every example, read back from the rows."""
    count = features["lengths"].size // groups
    return [
        tokens[segments == example + 1].tolist()
        for tokens, segments in zip(
            np.split(features["token_ids"], groups),
            np.split(features["segment_ids"], groups),
            strict=True,
        )
        for example in range(count)
    ]


def tokens_of(preprocessor, texts):
    return preprocessor.tokenize(texts).to_list()


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_rows_hold_the_texts_of_the_batch(
    build, query_preprocessor, document_preprocessor, groups
):
    batch = next(build(packing_groups=groups).as_numpy_iterator())
    rows = rows_of(batch)

    assert examples_of(batch["queries"], groups) == tokens_of(
        query_preprocessor, [QUERIES[row] for row in rows]
    )
    assert examples_of(batch["documents"], groups) == tokens_of(
        document_preprocessor, [DOCUMENTS[row] for row in rows]
    )


@pytest.mark.parametrize("groups", [1, 4])
def test_rows_hold_the_hard_negatives_pair_by_pair(
    build, document_preprocessor, groups
):
    dataset = build(packing_groups=groups, hard_negatives=NEGATIVES)
    batch = next(dataset.as_numpy_iterator())

    # Two places per pair; the empty text fills those without a negative.
    texts = [(NEGATIVES[row] + ["", ""])[:2] for row in rows_of(batch)]
    expected = tokens_of(document_preprocessor, sum(texts, []))
    features = batch["hard_negatives"]
    assert examples_of(features, groups) == expected
    assert features["lengths"].tolist() == [
        [len(a), len(b)]
        for a, b in zip(expected[::2], expected[1::2], strict=True)
    ]


def test_row_lengths_are_twice_the_queries_and_once_the_documents(build):
    spec = build().element_spec

    assert spec["queries"]["token_ids"].shape == [None, 12]
    assert spec["documents"]["token_ids"].shape == [None, 10]


def test_row_lengths_can_be_chosen(build):
    options = {"query_row_length": 9, "document_row_length": 21}
    spec = build(hard_negatives=NEGATIVES, **options).element_spec

    assert spec["queries"]["segment_ids"].shape == [None, 9]
    assert spec["documents"]["segment_ids"].shape == [None, 21]
    assert spec["hard_negatives"]["segment_ids"].shape == [None, 21]


def test_fixed_rows_make_all_shapes_static(build):
    rows = {"queries": 4, "documents": 8, "hard_negatives": 16}
    dataset = build(
        packing_groups=2, rows=rows, hard_negatives=NEGATIVES, batch_size=16
    )

    specs = tf.nest.flatten(dataset.element_spec)
    assert all(spec.shape.is_fully_defined() for spec in specs)
    assert dataset.element_spec["documents"]["token_ids"].shape == [16, 10]
    assert len(list(dataset)) == 1


def test_a_batch_beyond_the_fixed_rows_is_an_error(build):
    dataset = build(rows={"documents": 1})

    message = "batch of `documents` to fit into rows=1"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        next(iter(dataset))


def test_rows_are_a_multiple_in_every_group(build):
    dataset = build(packing_groups=2, row_multiple=3)

    for batch in dataset.as_numpy_iterator():
        assert len(batch["documents"]["token_ids"]) % 6 == 0


def test_packing_changes_no_batch(build):
    packed = [sorted(rows_of(b)) for b in build().as_numpy_iterator()]
    grouped = build(packing_groups=4).as_numpy_iterator()
    padded = build(packing=None).as_numpy_iterator()

    assert packed == [sorted(rows_of(b)) for b in padded]
    assert packed == [sorted(rows_of(b)) for b in grouped]


def test_groups_have_about_equally_many_document_tokens(build):
    for batch in build(packing_groups=4).as_numpy_iterator():
        lengths = batch["documents"]["lengths"].reshape(4, -1).sum(axis=1)

        assert lengths.max() - lengths.min() <= 10


def test_padded_places_are_marked_after_dealing_too(build):
    dataset = build(packing_groups=2, last_batch="pad", batch_size=10)
    batches = list(dataset.as_numpy_iterator())

    true_rows = [
        row
        for batch in batches
        for row, valid in zip(rows_of(batch), batch["is_valid"], strict=True)
        if valid
    ]
    assert sorted(true_rows) == list(range(24))
    assert batches[-1]["is_valid"].sum() == 4


def test_no_python_runs_per_step(build):
    graph = build(packing_groups=2)._as_serialized_graph().numpy()

    assert b"PyFunc" not in graph


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"packing": "none"}, "packing='none'"),
        ({"packing_groups": 3}, "packing_groups=3, batch_size=8"),
        ({"packing_groups": 0}, "packing_groups=0"),
        ({"row_multiple": 0}, "row_multiple=0"),
        ({"document_row_length": 9}, "at least 10.*document_row_length=9"),
        ({"query_row_length": 5}, "at least 6.*query_row_length=5"),
        ({"rows": {"document": 3}}, r"\['document'\]"),
        ({"rows": {"documents": 0}}, r"rows\['documents'\]=0"),
        ({"query_buckets": (3,)}, r"query_buckets=\(3,\)"),
        ({"packing": None, "rows": {"queries": 1}}, "packing=None.*rows="),
        ({"packing": None, "query_row_length": 9}, "query_row_length=9"),
    ],
    ids=[
        "unknown_packing",
        "groups_do_not_divide",
        "no_groups",
        "no_multiple",
        "short_document_rows",
        "short_query_rows",
        "unknown_rows",
        "no_rows",
        "buckets_and_packing",
        "rows_without_packing",
        "row_length_without_packing",
    ],
)
def test_bad_options_are_refused(build, options, message):
    with pytest.raises(InvalidInputError, match=message):
        build(**options)
