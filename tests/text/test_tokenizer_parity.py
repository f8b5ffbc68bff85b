"""Token ids against the sentencepiece package, on thousands of texts.

test_text_preprocessor.py has the short cases of the small vocabulary; here
are real texts, and the nasty ones with T5's own vocabulary as well.

Where two segmentations have exactly the same score ("BBB" as "BB B" or
"B BB") the package does not say which is taken (google/sentencepiece#747),
and from version 0.2.2 on it takes another one than before. tensorflow-text
2.20 does as 0.1.99, 0.2.0 and 0.2.1, whose ids for these texts are equal in
every row; those versions cannot be loaded beside TensorFlow 2.20.
"""

import functools
import itertools
import json
import operator
import os
import pathlib
import random
import re
import sysconfig
import unicodedata

import pytest
import sentencepiece
from data_files.make_tiny_vocabulary import TINY_VOCABULARY

from tf_samtone.text import TextPreprocessor, load_tokenizer

ROOT = pathlib.Path(__file__).parents[2]
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
VOCABULARIES = {
    "tiny": TINY_VOCABULARY,
    "t5": SHARED / "data" / "t5_small_encoder" / "spiece.model",
}
MEDQUAD = SHARED / "data" / "medquad"
NUM_TEXTS = 5000
# Of 5,000 real texts, the most in which two segmentations may tie.
MOST_TIES = 25
LENGTH = 512
# Long enough to cut no real text: a cut could fall between two tied pieces.
WHOLE_LENGTH = 16_384
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
NASTY = {
    "empty": "",
    "spaces": "   \t ",
    "other_spaces": "a\u00a0b\u3000c\u2009d\u200be\u0085f\u2028g",
    "lone_nul": "\0",
    "nul_inside": "what is\0 a cat\0",
    "controls": "a\x01b\x08c\x1bd\x7fe\x9ff",
    "literal_end": "what </s> is </s>",
    "literal_pad": "<pad><pad> a cat <pad>",
    "literal_unknown": "<unk> a \u2047 cat",
    "literal_sentinel": "a <extra_id_0> cat <extra_id_99>",
    "literal_word_mark": "\u2581a\u2581 \u2581\u2581 cat",
    "emoji": "a \U0001f600 cat \U0001f642\U0001f642",
    "joined_emoji": f"my {FAMILY} reads {FAMILY}{FAMILY}",
    "skin_tones": "\U0001f44d\U0001f3fd \U0001f9d1\U0001f3ff\u200d\U0001f52c",
    "flags": "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7 \U0001f3f3\ufe0f",
    "decomposed": unicodedata.normalize("NFD", "Größe, naïve Façade, Việt"),
    "composed": "Größe, naïve Façade, Việt Nam",
    "decomposed_hangul": unicodedata.normalize("NFD", "한국어 질문"),
    "compatibility_forms": "\ufb01nal \uff21\uff22\uff23 \u2460 \u00bd \u2122",
    "piled_marks": "e" + "\u0301\u0323" * 300 + " cat",
    "right_to_left": "\u200fשלום\u200e \u202eabc\u202c العربية",
    "byte_order_marks": "\ufeffa cat\ufeff reads",
    "line_ends": "a\r\nb\rc\nd\n\n\re",
    "noncharacters": "a\ufffe\uffff\U0010ffff cat",
    "replacement": "a\ufffd\ufffd cat",
    "private_use": "a \ue000\U000f0000 cat",
    "long_word": "Donaudampfschiffahrtsgesellschaft" * 60,
    "cut_two_bytes": "a caf\u00e9".encode()[:-1],
    "cut_four_bytes": "a \U0001f600".encode()[:-2],
    "cut_inside": b"a \xf0\x9f\x98 cat \xe2\x82 dog \xc3",
    "stray_bytes": b"\x80\xbf\xfe\xff a \xc0\xaf cat",
    "surrogates": b"\xed\xa0\xbd\xed\xb8\x80 cat",
    "beyond_unicode": b"\xf4\x90\x80\x80\xf8\x88\x80\x80\x80 cat",
    "latin_1": "Gr\u00f6\u00dfe na\u00efve".encode("latin-1"),
    "utf_16": "a cat".encode("utf-16"),
}


def every_nth(items: list[str], number: int) -> list[str]:
    return items[:: max(1, len(items) // number)][:number]


@functools.cache
def python_texts() -> list[str]:
    """Return docstrings of the standard library, in the order of its files."""
    texts = []
    folder = pathlib.Path(sysconfig.get_path("stdlib"))
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        texts += re.findall(r'"""(.+?)"""', source, re.DOTALL)
    return every_nth(texts, NUM_TEXTS)


def medquad_texts() -> list[str]:
    """Return as many queries as documents of the collection."""
    texts = []
    for name in ("queries", "corpus"):
        lines = (MEDQUAD / f"{name}.jsonl").read_text(encoding="utf-8")
        rows = [json.loads(line)["text"] for line in lines.splitlines()]
        texts += every_nth(rows, NUM_TEXTS // 2)
    return texts


@pytest.fixture(scope="module", params=VOCABULARIES)
def pair(request):
    """Our preprocessor of one vocabulary, and the package's processor."""
    path = VOCABULARIES[request.param]
    if not path.is_file():
        pytest.skip("needs ../shared/data (or set TF_SAMTONE_SHARED)")
    return (
        TextPreprocessor(load_tokenizer(path), LENGTH),
        sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes()),
    )


def expected_rows(reference, texts, length=LENGTH) -> list[list[int]]:
    """Return what the package gives, cut, and with `</s>` at the end."""
    return [[*row[: length - 1], 1] for row in reference.encode(list(texts))]


def assert_equal_rows(actual, expected, texts) -> None:
    """Name the first text that differs; a list of 5,000 says nothing."""
    different = [
        (text, ours, theirs)
        for text, ours, theirs in zip(texts, actual, expected, strict=True)
        if ours != theirs
    ]
    assert not different, f"{len(different)} differ, first {different[0]}"


def assert_equal_but_for_ties(pair, texts) -> None:
    """Allow another order of the same pieces, which has the same score."""
    preprocessor, reference = pair
    preprocessor = TextPreprocessor(preprocessor.tokenizer, WHOLE_LENGTH)
    actual = preprocessor.tokenize(texts).to_list()
    expected = expected_rows(reference, texts, WHOLE_LENGTH)
    assert_equal_rows(map(sorted, actual), map(sorted, expected), texts)
    assert sum(map(operator.ne, actual, expected)) <= MOST_TIES


def test_5000_docstrings_of_python_have_the_same_ids(pair):
    texts = python_texts()

    assert len(texts) == NUM_TEXTS
    assert_equal_but_for_ties(pair, texts)


@pytest.mark.skipif(not MEDQUAD.is_dir(), reason="needs ../shared/data/medquad")
def test_5000_texts_of_medquad_have_the_same_ids(pair):
    texts = medquad_texts()

    assert len(texts) == NUM_TEXTS
    assert_equal_but_for_ties(pair, texts)


def decoded(text: str | bytes) -> str:
    if isinstance(text, str):
        return text
    return text.decode("utf-8", errors="replace")


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_a_nasty_text_has_the_same_ids(pair, text):
    preprocessor, reference = pair

    row = preprocessor.tokenize([text])[0].numpy().tolist()

    assert row == expected_rows(reference, [decoded(text)])[0]


def test_no_nasty_text_makes_a_special_token(pair):
    preprocessor, _ = pair

    rows = preprocessor.tokenize(list(NASTY.values())).to_list()

    assert all(row[-1] == 1 for row in rows)
    assert not {0, 1} & set(itertools.chain(*(row[:-1] for row in rows)))


def test_random_bytes_have_the_ids_of_their_replacement(pair):
    preprocessor, reference = pair
    drawn = random.Random(0)
    texts = [drawn.randbytes(drawn.randrange(1, 200)) for _ in range(500)]

    rows = preprocessor.tokenize(texts).to_list()

    expected = expected_rows(reference, map(decoded, texts))
    assert_equal_rows(rows, expected, texts)


def test_random_characters_have_the_same_ids(pair):
    preprocessor, reference = pair
    drawn = random.Random(0)
    planes = [*range(0xD800), *range(0xE000, 0x30000)]
    texts = ["".join(map(chr, drawn.sample(planes, 60))) for _ in range(500)]

    rows = preprocessor.tokenize(texts).to_list()

    assert_equal_rows(rows, expected_rows(reference, texts), texts)


LONG = {
    "words": "the doctor treats a rare disease of the heart. " * 2200,
    "one_word": "a" * 100_000,
    "spaces_then_word": " " * 100_000 + "cat",
    "two_bytes_off_by_one": "a" + "\u00e9" * 100_000,
    "emoji": "\U0001f600" * 100_000,
}


@pytest.mark.parametrize("length", [8, 64, LENGTH])
@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_100_000_characters_have_the_ids_of_the_bytes_read(pair, text, length):
    ours, reference = pair
    preprocessor = TextPreprocessor(ours.tokenizer, length)

    row = preprocessor.tokenize([text])[0].numpy().tolist()

    head = text.encode()[: preprocessor.maximum_bytes]
    assert row == expected_rows(reference, [decoded(head)], length)[0]


def test_the_bytes_not_read_make_no_difference_to_ordinary_text(pair):
    preprocessor, reference = pair

    row = preprocessor.tokenize([LONG["words"]])[0].numpy().tolist()

    assert row == expected_rows(reference, [LONG["words"]])[0]
