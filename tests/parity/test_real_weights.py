"""Embeddings of real texts by real weights, beside sentence-transformers."""

import json
import os
import pathlib

import numpy as np
import pytest

from tf_samtone.models import DualEncoder

pytestmark = pytest.mark.parity
ROOT = pathlib.Path(__file__).parents[2]
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
REAL = SHARED / "data" / "t5_small_encoder"
MEDQUAD = SHARED / "data" / "medquad"
LENGTH = 256


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Return 100 questions and 100 answers of MedQuAD."""
    if not (REAL.is_dir() and MEDQUAD.is_dir()):
        pytest.skip("needs ../shared/data (or set TF_SAMTONE_SHARED)")
    texts = []
    for name in ("queries", "corpus"):
        lines = (MEDQUAD / f"{name}.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line)["text"] for line in lines.splitlines()]
        texts += rows[:: len(rows) // 100][:100]
    return texts


@pytest.fixture(scope="module")
def expected(reference, texts) -> np.ndarray:
    """Return the mean of the hidden states of every text."""
    # A folder without modules.json gets mean pooling there.
    return reference.call(
        "embeddings", folder=str(REAL), texts=texts, max_seq_length=LENGTH
    )["document"]


def encode(texts, dtype) -> np.ndarray:
    model = DualEncoder.from_preset(
        str(REAL),
        projection_dim=0,
        normalize=False,
        document_length=LENGTH,
        dtype=dtype,
    )
    return model.encode_documents(texts)


def test_float32_embeddings_agree(texts, expected):
    embeddings = encode(texts, "float32")

    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(embeddings, expected, rtol=0, atol=atol)


def test_bfloat16_embeddings_point_the_same_way(texts, expected):
    embeddings = encode(texts, "mixed_bfloat16")

    norms = [np.linalg.norm(e, axis=1) for e in (embeddings, expected)]
    cosines = (embeddings * expected).sum(1) / np.prod(norms, axis=0)
    assert cosines.min() >= 0.999
