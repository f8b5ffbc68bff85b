"""Embeddings beside sentence-transformers itself, on the grid of folders."""

import numpy as np
import pytest
from sbert_cases import CASES, read_golden, read_texts

from tf_samtone.models import DualEncoder

pytestmark = pytest.mark.parity
TEXTS = [
    "what is a cat ?",
    "",
    "the doctor treats the symptoms of a disease with great care. " * 5,
    "one green parrot",
    "  sorts   numbers\tin descending\norder  ",
    "the caf\u00e9, its n\u00famber 42 \u2014 and \u4e2d\u6587 \U0001f600",
]


def assert_close(actual, expected) -> None:
    """Compare to 1e-5 of the largest expected value."""
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


@pytest.fixture
def folder(tmp_path, request):
    CASES[request.param].write(tmp_path / request.param)
    return tmp_path / request.param


@pytest.fixture
def reference_embeddings(reference):
    """Give the embeddings of queries and of documents, and the length."""

    def embeddings(folder, texts, **options) -> dict:
        return reference.call(
            "embeddings", folder=str(folder), texts=texts, **options
        )

    return embeddings


@pytest.mark.parametrize("folder", CASES, indirect=True)
def test_batches_have_the_same_embeddings(folder, reference_embeddings):
    expected = reference_embeddings(folder, TEXTS)

    model = DualEncoder.from_preset(str(folder))

    assert_close(model.encode_queries(TEXTS), expected["query"])
    assert_close(model.encode_documents(TEXTS), expected["document"])


@pytest.mark.parametrize("folder", CASES, indirect=True)
def test_the_goldens_are_what_the_package_gives(folder, reference_embeddings):
    golden = read_golden(folder.name)

    # In one batch here, one by one when the goldens were made.
    live = reference_embeddings(folder, read_texts())

    assert_close(live["query"], golden["query"])
    assert_close(live["document"], golden["document"])


@pytest.mark.parametrize("folder", ["short", "short_current"], indirect=True)
def test_the_lengths_are_those_of_the_package(folder, reference_embeddings):
    model = DualEncoder.from_preset(str(folder))

    assert reference_embeddings(folder, [""])["max_seq_length"] == 64
    assert model.query_preprocessor.sequence_length == 64
    assert model.document_preprocessor.sequence_length == 64


@pytest.mark.parametrize("folder", ["prompts", "router"], indirect=True)
def test_what_the_package_saves_again_is_read(
    folder, reference_embeddings, tmp_path
):
    again = tmp_path / "again"
    expected = reference_embeddings(folder, TEXTS, save_to=str(again))
    # It writes tokenizer.json, its own form of the vocabulary, and no other.
    vocabulary = next(folder.rglob("spiece.model")).read_bytes()
    for config in [*again.rglob("tokenizer_config.json")]:
        (config.parent / "spiece.model").write_bytes(vocabulary)

    model = DualEncoder.from_preset(str(again))

    assert_close(model.encode_queries(TEXTS), expected["query"])
    assert_close(model.encode_documents(TEXTS), expected["document"])
