"""Token ids beside transformers' T5 tokenizer."""

import json
import os
import pathlib

import pytest
from t5_folders import T5Folder

from tf_samtone.text import TextPreprocessor, load_tokenizer

pytestmark = pytest.mark.parity
ROOT = pathlib.Path(__file__).parents[2]
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
REAL = SHARED / "data" / "t5_small_encoder"
MEDQUAD = SHARED / "data" / "medquad"
TEXTS = {
    "plain": "the doctor treats a disease",
    "empty": "",
    "spaces": " two  spaces \t and tabs\n",
    "punctuation": "what's (a) cat-like, 4.5% dog?",
    "composed": "the caf\u00e9",
    "decomposed": "the cafe\u0301",
    "compatibility_forms": "\ufb01nal \uff21\uff22 \u00bd",
    "emoji": "a \U0001f600 cat \U0001f469\u200d\U0001f52c",
    "right_to_left": "\u200f\u05e9\u05dc\u05d5\u05dd abc",
    "byte_order_mark": "\ufeffa cat",
    "nul": "a\0cat",
    "line_ends": "a\r\nb\rc",
    "cut_at_512": "a cat reads. " * 400,
}


@pytest.fixture(scope="module", params=["tiny", "real"])
def folder(request, tmp_path_factory):
    """A folder of either vocabulary."""
    if request.param == "real":
        if not REAL.is_dir():
            pytest.skip("needs ../shared/data")
        return REAL
    folder = tmp_path_factory.mktemp("t5")
    T5Folder().write(folder)
    return folder


def our_rows(folder, texts, length) -> list[list[int]]:
    tokenizer = load_tokenizer(folder / "spiece.model")
    return TextPreprocessor(tokenizer, length).tokenize(texts).to_list()


@pytest.fixture
def reference_rows(reference):
    def rows(folder, texts, length, specials=()):
        answer = reference.call(
            "token_ids",
            folder=str(folder),
            texts=texts,
            max_length=length,
            specials=list(specials),
        )
        return answer["rows"], answer["specials"]

    return rows


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_ids_are_those_of_transformers(folder, reference_rows, text):
    expected, _ = reference_rows(folder, [text], 512)

    assert our_rows(folder, [text], 512) == expected


@pytest.mark.parametrize(
    ("text", "special"),
    [
        ("a cat </s> sleeps", "</s>"),
        ("a <pad> cat", "<pad>"),
        ("a <extra_id_0> cat", "<extra_id_0>"),
        ("a <unk> cat", "<unk>"),
    ],
)
def test_a_literal_special_token_is_text_here_and_special_there(
    folder, reference_rows, text, special
):
    # Text that came from a user must not end a row or hide itself.
    [theirs], [special_id] = reference_rows(folder, [text], 512, [special])

    [ours] = our_rows(folder, [text], 512)

    assert special_id in theirs[:-1]
    assert not {0, 1} & set(ours[:-1])
    assert ours != theirs


@pytest.mark.skipif(not MEDQUAD.is_dir(), reason="needs ../shared/data")
def test_5000_texts_of_medquad_have_the_pieces_of_transformers(
    folder, reference_rows
):
    # Two orders of the same pieces have one score, and which of them is taken
    # differs between implementations: "BBB" is "BB B" or "B BB".
    texts = []
    for name in ("queries", "corpus"):
        lines = (MEDQUAD / f"{name}.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line)["text"] for line in lines.splitlines()]
        texts += rows[:: len(rows) // 2500][:2500]

    # Whole: a cut could fall between two tied pieces.
    ours = our_rows(folder, texts, 4096)
    theirs, _ = reference_rows(folder, texts, 4096)

    assert len(texts) == 5000
    assert list(map(sorted, ours)) == list(map(sorted, theirs))
    equal = sum(a == b for a, b in zip(ours, theirs, strict=True))
    assert equal >= 4990
