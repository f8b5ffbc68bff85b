"""Tiny models that several folders of tests use."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tf_samtone.models import DualEncoder, T5Encoder
from tf_samtone.text import load_tokenizer

DATA_FILES = Path(__file__).resolve().parent / "data_files"
TINY_SIZES = {
    "vocabulary_size": 384,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 16,
    "intermediate_dim": 24,
    "key_value_dim": 6,
    "dropout": 0.1,
}


@pytest.fixture(scope="session")
def make_tiny_encoder() -> Callable[..., T5Encoder]:
    """Make encoders of random weights; the same seed gives the same ones."""

    def make(seed: int = 0, **options) -> T5Encoder:
        # Keras draws the seeds of initializers and dropout from here.
        # keras.utils.set_random_seed would also seed TensorFlow, which then
        # forgets the vocabularies of all tokenizers (tensorflow-text 2.20).
        random.seed(seed)
        return T5Encoder(**{**TINY_SIZES, **options})

    return make


@pytest.fixture(scope="session")
def make_tiny_dual_encoder(make_tiny_encoder) -> Callable[..., DualEncoder]:
    """Make dual encoders around `make_tiny_encoder`, with `tiny.spm`."""

    def make(
        architecture: str = "sde", *, seed: int = 0, encoder=None, **options
    ) -> DualEncoder:
        sizes = {"projection_dim": 8, "query_length": 6, "document_length": 12}
        return DualEncoder.from_encoder(
            encoder or make_tiny_encoder(seed, num_layers=1),
            load_tokenizer(DATA_FILES / "tiny.spm"),
            architecture=architecture,
            **{**sizes, **options},
        )

    return make
