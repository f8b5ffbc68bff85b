"""Embeddings against those that sentence-transformers gave for the folder.

The goldens are made by tests/data_files/make_sbert_goldens.py; tests/parity
does the same with the package itself.
"""

import functools
import os
import pathlib

import numpy as np
import pytest
from sbert_cases import CASES, GOLDENS, read_golden, read_index, read_texts

from tf_samtone.checkpoints import load_hugging_face_t5
from tf_samtone.models import DualEncoder

ROOT = pathlib.Path(__file__).parents[2]
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
REAL_LENGTHS = (1, 2, 8, 64, 200, 512)
# One of each depth, kind and Dense module; the rest runs as `large`.
QUICK = {
    "relu_1_none",
    "relu_2_bias",
    "gated_3_bare",
    "unnormalized_current",
    "tanh",
    "short_current",
    "float16_shards",
    "bfloat16_decoder",
    "router_dense",
    "router_shared_dense",
}
DEEP = ("relu_3_bias", "gated_3_bare")
SIDES = ("query", "document")


def by_cost(names) -> list:
    return [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.large)
        for name in names
    ]


def assert_close(actual, expected) -> None:
    """Compare to 1e-5 of the largest expected value."""
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


def cosines(actual, expected) -> np.ndarray:
    actual, expected = np.float64(actual), np.float64(expected)
    norms = np.linalg.norm(actual, axis=-1) * np.linalg.norm(expected, axis=-1)
    return (actual * expected).sum(-1) / norms


@pytest.fixture(scope="module")
def load(tmp_path_factory):
    """Load the folder of a case; once for each case and dtype."""

    @functools.cache
    def folder_of(name: str) -> pathlib.Path:
        folder = tmp_path_factory.mktemp("sbert") / name
        CASES[name].write(folder)
        return folder

    @functools.cache
    def load(name: str, dtype: str = "float32") -> DualEncoder:
        return DualEncoder.from_preset(folder_of(name), dtype=dtype)

    return load


@pytest.mark.parametrize("name", CASES)
def test_the_weights_are_those_of_the_goldens(tmp_path, name):
    digest = CASES[name].write(tmp_path / name)

    assert digest == read_index()["weights_sha256"][name]


@pytest.mark.parametrize("name", by_cost(CASES))
def test_embeddings_equal_those_of_sentence_transformers(load, name):
    model, golden = load(name), read_golden(name)

    assert_close(model.encode_queries(read_texts()), golden["query"])
    assert_close(model.encode_documents(read_texts()), golden["document"])


@pytest.mark.parametrize("name", ["short", "short_current"])
def test_the_maximum_length_is_that_of_the_folder(load, name):
    model = load(name)

    assert model.query_preprocessor.sequence_length == 64
    assert model.document_preprocessor.sequence_length == 64


def features_of(model, texts, length) -> dict[str, np.ndarray]:
    """Return the features of the texts, padded to `length` tokens."""
    features = model.document_preprocessor(texts)
    return {
        name: np.pad(value.numpy()[:, :length], [(0, 0), (0, padding)])
        for name, value in features.items()
        for padding in [max(0, length - value.shape[1])]
    }


@pytest.mark.parametrize("name", DEEP)
def test_a_text_alone_has_the_same_embedding(load, name):
    model, golden = load(name), read_golden(name)["document"]

    alone = [model.encode_documents([text]) for text in read_texts()]

    assert_close(np.concatenate(alone), golden)


@pytest.mark.parametrize("name", DEEP)
def test_the_other_texts_of_a_batch_do_not_matter(load, name):
    model, golden = load(name), read_golden(name)["document"]
    texts = read_texts()
    # Neighbours of other lengths, in one batch padded to the longest.
    order = [9, 0, 3, 8, 1, 5, 2, 6]
    features = features_of(model, [texts[i] for i in order], 512)

    embeddings = model.document_tower(features, training=False)

    assert_close(embeddings, golden[order])


@pytest.mark.parametrize("padding", [1, 7, 200])
@pytest.mark.parametrize("name", DEEP)
def test_more_padding_does_not_matter(load, name, padding):
    model, golden = load(name), read_golden(name)["document"]
    rows = slice(0, 6)  # the longest of them has 129 tokens
    features = features_of(model, read_texts()[rows], 129 + padding)

    embeddings = model.document_tower(features, training=False)

    assert_close(embeddings, golden[rows])


@pytest.mark.parametrize("name", DEEP)
def test_texts_packed_in_one_row_have_the_same_embeddings(load, name):
    model, golden = load(name), read_golden(name)["document"]

    packed = model.encode_documents(read_texts(), packing="rows")

    assert_close(packed, golden)


@pytest.mark.parametrize("name", by_cost(CASES))
def test_bfloat16_points_the_same_way(load, name):
    model, golden = load(name, "mixed_bfloat16"), read_golden(name)

    queries = cosines(model.encode_queries(read_texts()), golden["query"])
    documents = model.encode_documents(read_texts())
    documents = cosines(documents, golden["document"])

    assert min(queries.min(), documents.min()) >= 0.999


@pytest.fixture(scope="module")
def real() -> pathlib.Path:
    folder = SHARED / "data" / "t5_small_encoder"
    if not folder.is_dir():
        pytest.skip(
            "needs the real T5 weights in ../shared/data/t5_small_encoder "
            "(or set TF_SAMTONE_SHARED)"
        )
    return folder


@pytest.fixture(scope="module")
def real_outputs(real):
    """Hidden states by dtype and length, of one text per length."""

    @functools.cache
    def outputs(dtype: str) -> dict[int, np.ndarray]:
        encoder, golden = load_hugging_face_t5(real, dtype=dtype), read_real()
        states = {}
        for length in REAL_LENGTHS:
            # Padded as DualEncoder does, to the next multiple of 8.
            row = golden[f"token_ids_{length}"]
            inputs = {
                "token_ids": np.pad(row, (0, -length % 8))[np.newaxis],
                "padding_mask": np.pad(np.ones_like(row), (0, -length % 8))[
                    np.newaxis
                ],
            }
            output = encoder(inputs, training=False)
            states[length] = np.float32(output)[0, :length]
        return states

    return outputs


@functools.cache
def read_real() -> dict[str, np.ndarray]:
    with np.load(GOLDENS / "t5_small_encoder.npz", allow_pickle=False) as file:
        return dict(file)


@pytest.mark.parametrize("length", REAL_LENGTHS)
def test_real_hidden_states_agree_with_transformers(real_outputs, length):
    states, golden = real_outputs("float32")[length], read_real()

    np.testing.assert_allclose(
        states[golden[f"positions_{length}"]],
        golden[f"states_{length}"],
        rtol=0,
        atol=1e-5 * golden[f"scale_{length}"],
    )
    assert_close(np.float64(states).mean(0), golden[f"mean_{length}"])


@pytest.mark.parametrize("length", REAL_LENGTHS)
def test_the_mean_of_real_bfloat16_states_points_the_same_way(
    real_outputs, length
):
    mean = np.float64(real_outputs("mixed_bfloat16")[length]).mean(0)

    assert cosines(mean, read_real()[f"mean_{length}"]) >= 0.999
