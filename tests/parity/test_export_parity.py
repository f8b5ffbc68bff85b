"""Exported folders in the libraries that they are made for."""

import functools
import json
import os
import pathlib
import re
import subprocess
import sys
import sysconfig

import numpy as np
import pytest
import sentencepiece

from tf_samtone.checkpoints import (
    ModelCard,
    save_hugging_face_t5,
    save_sentence_transformers,
)
from tf_samtone.checkpoints._foreign_tokenizer import write_foreign_tokenizer
from tf_samtone.models import projection_layer
from tf_samtone.text import load_tokenizer

pytestmark = pytest.mark.parity
ROOT = pathlib.Path(__file__).parents[2]
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
VOCABULARIES = {
    "tiny": ROOT / "tests" / "data_files" / "tiny.spm",
    "t5": SHARED / "data" / "t5_small_encoder" / "spiece.model",
}
TEXTS = [
    "a question about whales",
    "",
    "  what   is\tit?\n",
    "long " * 200,
    "Gr\u00f6\u00dfe \u5b57 \U0001f600",
]
LENGTHS = {"query_length": 32, "document_length": 32}
PREFIXES = {"query_prefix": "ask: ", "document_prefix": "read: "}
CASES = {
    **{
        name: {"architecture": name}
        for name in ("sde", "ade", "ade-spl", "ade-ste", "ade-fte")
    },
    "ade_lengths": {
        "architecture": "ade",
        "query_length": 6,
        "document_length": 20,
    },
    "sde_prefixes": PREFIXES,
    "ade_prefixes": {"architecture": "ade", **PREFIXES},
    "sde_bare": {"projection_dim": 0, "normalize": False},
    "ade_bare": {
        "architecture": "ade",
        "projection_dim": 0,
        "normalize": False,
    },
    "spl_none": {"architecture": "ade-spl", "projection_dim": 0},
    "spl_tanh": {"architecture": "ade-spl", "head": (True, "tanh")},
    "ade_relu": {"architecture": "ade", "head": (True, "relu")},
    "t5_1.0": {"kind": ("relu", False)},
    "ungated_gelu": {"kind": ("gelu", False)},
    "gated_relu": {"kind": ("relu", True)},
}


@pytest.fixture(params=CASES)
def model(request, make_tiny_encoder, make_tiny_dual_encoder):
    """A model in which every weight matters, and both towers differ."""
    options = {**LENGTHS, **CASES[request.param]}
    activation, gated = options.pop("kind", ("gelu", True))
    use_bias, head = options.pop("head", (False, None))
    if head:
        options["projection"] = projection_layer(
            8, use_bias=use_bias, activation=head
        )
    encoder = make_tiny_encoder(
        activation=activation, use_gated_activation=gated
    )
    model = make_tiny_dual_encoder(encoder=encoder, **options)
    generator = np.random.default_rng(1)
    for weight in model.weights:
        noise = generator.standard_normal(weight.shape)
        weight.assign(weight.numpy() + 0.3 * noise)
    return model


def assert_same_but_for_ties(rows, expected, processor) -> None:
    """Compare token ids.

    Two segmentations of one score are taken in another order by some
    versions: "BBB" is "BB B" or "B BB".
    """
    pairs = zip(rows, expected, strict=True)
    differing = [pair for pair in pairs if pair[0] != pair[1]]
    assert len(differing) <= 20
    for ours, theirs in differing:
        assert sum(map(processor.get_score, ours)) == pytest.approx(
            sum(map(processor.get_score, theirs))
        )


def assert_close(actual, expected) -> None:
    """Compare to 1e-5 of the largest expected value."""
    scale = np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5 * scale)


@functools.cache
def docstrings() -> list[str]:
    """Return 2,000 docstrings of the standard library."""
    texts = []
    for path in sorted(
        pathlib.Path(sysconfig.get_path("stdlib")).rglob("*.py")
    ):
        if "site-packages" not in path.parts:
            source = path.read_text(encoding="utf-8", errors="replace")
            texts += re.findall(r'"""(.+?)"""', source, re.DOTALL)
    return texts[:: len(texts) // 2000][:2000]


@pytest.fixture(params=VOCABULARIES)
def vocabulary(request) -> pathlib.Path:
    path = VOCABULARIES[request.param]
    if not path.is_file():
        pytest.skip("needs ../shared/data (or set TF_SAMTONE_SHARED)")
    return path


def test_sentence_transformers_gives_our_embeddings(reference, model, tmp_path):
    save_sentence_transformers(model, tmp_path)

    answer = reference.call("embeddings", folder=str(tmp_path), texts=TEXTS)

    assert_close(answer["query"], model.encode_queries(TEXTS))
    assert_close(answer["document"], model.encode_documents(TEXTS))


def test_the_code_of_the_card_gives_our_scores(reference, model, tmp_path):
    save_hugging_face_t5(model, tmp_path, max_shard_bytes=10_000)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    code = code.replace("path/to/this/folder", str(tmp_path))

    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(scores.tolist())"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    expected = model.similarity(
        model.encode_queries(["a question"]),
        model.encode_documents(["an answer", "another answer"]),
    )
    assert_close(json.loads(done.stdout), expected)


@pytest.mark.parametrize("architecture", ["sde", "ade"])
def test_the_code_of_the_other_card_runs(
    reference, make_tiny_dual_encoder, tmp_path, architecture
):
    # Of one length: a folder of one tower has no place for two.
    model = make_tiny_dual_encoder(
        architecture, query_length=12, document_length=12
    )
    save_sentence_transformers(model, tmp_path, card=ModelCard(title="x"))
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1]
    code = code.replace("path/to/this/folder", str(tmp_path))

    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nprint(scores.tolist())"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stderr
    expected = model.similarity(
        model.encode_queries(["a question"]),
        model.encode_documents(["an answer", "another answer"]),
    )
    assert_close(json.loads(done.stdout), expected)


def test_tokenizers_gives_the_ids_of_sentencepiece(vocabulary, tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    processor = sentencepiece.SentencePieceProcessor(str(vocabulary))
    write_foreign_tokenizer(tmp_path, load_tokenizer(vocabulary), 512)

    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))

    rows = [row.ids for row in tokenizer.encode_batch(docstrings())]
    expected = [[*processor.encode(text), 1] for text in docstrings()]
    assert len(rows) == 2000
    assert_same_but_for_ties(rows, expected, processor)


def test_transformers_gives_the_ids_of_tokenizers(
    reference, vocabulary, tmp_path
):
    tokenizers = pytest.importorskip("tokenizers")
    write_foreign_tokenizer(tmp_path, load_tokenizer(vocabulary), 512)
    # transformers finds out from it which tokenizer the folder has.
    (tmp_path / "config.json").write_text('{"model_type": "t5"}')
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))

    answer = reference.call(
        "token_ids",
        folder=str(tmp_path),
        texts=docstrings(),
        max_length=100_000,
        specials=["<pad>", "</s>", "<unk>", "<extra_id_0>"],
    )

    rows = [row.ids for row in tokenizer.encode_batch(docstrings())]
    assert len(rows) == 2000
    processor = sentencepiece.SentencePieceProcessor(str(vocabulary))
    assert_same_but_for_ties(answer["rows"], rows, processor)
    # No sentinels: each would be an id beyond the vocabulary.
    assert answer["specials"] == [0, 1, 2, 2]
