"""Encoding of many texts in batches of similar length."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.text_encoding import encode_texts, texts_of_dataset

TEXTS = [
    "a cat",
    "",
    "the small dog reads a long book at night without a reason",
    "an old teacher finds the right answer",
    "a cat",
    "every student sleeps",
]


@pytest.fixture
def preprocessor(make_tiny_dual_encoder):
    return make_tiny_dual_encoder().document_preprocessor


class Recorder:
    """A tower that returns sum, count and largest id, and keeps its inputs."""

    def __init__(self):
        self.batches = []

    def __call__(self, features):
        self.batches.append(features)
        ids, mask = features["token_ids"], features["padding_mask"]
        columns = (ids * mask, mask, ids * mask)
        sums = [tf.reduce_sum(c, axis=1) for c in columns[:2]]
        parts = [*sums, tf.reduce_max(columns[2], axis=1)]
        return tf.cast(tf.stack(parts, axis=1), tf.float32)


def encode(preprocessor, texts, **options):
    tower = Recorder()
    return encode_texts(tower, preprocessor, texts, dim=3, **options), tower


@pytest.mark.parametrize("tokens_per_batch", [1, 20, 10_000])
def test_row_i_belongs_to_text_i(preprocessor, tokens_per_batch):
    embeddings, _ = encode(
        preprocessor, TEXTS, tokens_per_batch=tokens_per_batch
    )
    rows = [row.numpy() for row in preprocessor.tokenize(TEXTS)]
    expected = [[row.sum(), len(row), row.max()] for row in rows]
    assert embeddings.dtype == np.float32
    np.testing.assert_array_equal(embeddings, expected)


@pytest.mark.parametrize("tokens_per_batch", [16, 40])
def test_no_batch_holds_more_than_the_budget(preprocessor, tokens_per_batch):
    _, tower = encode(preprocessor, TEXTS, tokens_per_batch=tokens_per_batch)
    sizes = [int(tf.size(b["token_ids"])) for b in tower.batches]
    assert max(sizes) <= tokens_per_batch
    assert len(sizes) > 1


def test_few_lengths_are_traced(preprocessor):
    _, tower = encode(preprocessor, TEXTS, tokens_per_batch=16)
    lengths = {b["token_ids"].shape[1] for b in tower.batches}
    assert lengths <= {8, 16}


def test_texts_are_cut_to_the_length_of_the_preprocessor(preprocessor):
    embeddings, _ = encode(preprocessor, ["a cat " * 100])
    assert embeddings[0, 1] == preprocessor.sequence_length


def test_more_texts_than_are_tokenized_at_once_keep_their_order(preprocessor):
    texts = [TEXTS[i % 4] for i in range(4100)]
    embeddings, _ = encode(preprocessor, texts)
    few, _ = encode(preprocessor, TEXTS[:4])
    np.testing.assert_array_equal(embeddings, np.tile(few, [1025, 1]))


def test_no_texts_give_no_rows(preprocessor):
    embeddings, tower = encode(preprocessor, [])
    assert embeddings.shape == (0, 3)
    assert not tower.batches


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("a cat", "Wrap a single text"),
        ("", "Wrap a single text"),
        (iter(TEXTS), "list of strings"),
        (["a cat", None], r"texts\[1\]=None"),
    ],
    ids=["string", "empty string", "generator", "none"],
)
def test_anything_but_a_list_of_texts_is_refused(preprocessor, texts, message):
    with pytest.raises(InvalidInputError, match=message):
        encode(preprocessor, texts)


def test_progress_is_silent_unless_asked_for(preprocessor, capsys):
    encode(preprocessor, TEXTS)
    assert capsys.readouterr() == ("", "")
    encode(preprocessor, TEXTS, show_progress=True, description="queries")
    assert "queries: 100%" in capsys.readouterr().err


def test_a_dataset_may_be_batched_or_not():
    scalars = tf.data.Dataset.from_tensor_slices(["a", "b\0", ""])
    expected = [b"a", b"b\0", b""]
    assert texts_of_dataset(scalars) == expected
    assert texts_of_dataset(scalars.batch(2)) == expected


def test_a_dataset_of_anything_else_is_refused():
    with pytest.raises(InvalidInputError, match="dataset of strings"):
        texts_of_dataset(tf.data.Dataset.range(3))
