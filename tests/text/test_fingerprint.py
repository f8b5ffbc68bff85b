"""Text fingerprints."""

import hashlib

import numpy as np
import pytest

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import fingerprint


def test_value_is_the_top_of_blake2b_without_the_sign_bit():
    # b2sum of "a cat", 8 bytes, big endian, top bit cleared.
    digest = hashlib.blake2b(b"a cat", digest_size=8).hexdigest()

    assert fingerprint(["a cat"])[0] == int(digest, 16) % 2**63


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("caf\u00e9", "cafe\u0301"),
        ("a cat", "  a \t\r\n cat "),
        ("a cat", "a\u00a0cat"),
        ("", " \n "),
        ("a cat", b"a cat"),
    ],
    ids=["nfd", "ascii_space", "no_break_space", "blank", "bytes"],
)
def test_same_text_has_the_same_fingerprint(text, same):
    assert fingerprint([text])[0] == fingerprint([same])[0]


@pytest.mark.parametrize(
    ("text", "other"),
    [("a cat", "A cat"), ("a cat", "acat"), ("a", "\ud800"), ("", "a")],
    ids=["case", "no_space", "lone_surrogate", "empty"],
)
def test_other_text_has_another_fingerprint(text, other):
    assert fingerprint([text])[0] != fingerprint([other])[0]


def test_values_are_positive_int64():
    values = fingerprint([f"text {i}" for i in range(2000)])

    assert values.dtype == np.int64
    assert values.min() > 0
    assert len(set(values.tolist())) == 2000


def test_zero_is_kept_free(monkeypatch):
    class Zeros:
        def digest(self):
            return bytes(8)

    monkeypatch.setattr(hashlib, "blake2b", lambda *_, **__: Zeros())

    assert fingerprint(["a"]).tolist() == [1]


def test_no_texts_give_no_ids():
    assert fingerprint([]).shape == (0,)


def test_a_row_that_is_no_string_is_named():
    with pytest.raises(InvalidInputError, match=r"queries\[1\]=None"):
        fingerprint(["a", None], name="queries")
