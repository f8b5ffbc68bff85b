"""Stable 64-bit identities of texts."""

import hashlib
import unicodedata
from collections.abc import Sequence

import numpy as np

from tf_samtone.text._inputs import check_texts

_LARGEST_INT64 = 2**63 - 1


def fingerprint(texts: Sequence[str], name: str = "texts") -> np.ndarray:
    """Hashes texts to int64 ids that stay the same in every process.

    Texts that differ only in Unicode composition (NFC) or in white space
    share one fingerprint. Losses use it to find rows with the same text,
    which must not be negatives of each other.

    >>> fingerprint(["a cat", " a  cat ", "a dog"]).tolist()
    [7491139519574695330, 7491139519574695330, 9080073126005594823]

    Args:
        texts: list of strings; the empty string is allowed.
        name: str. What an error calls `texts`. Defaults to `"texts"`.

    Returns:
        int64 `[len(texts)]`, every value at least 1, so that 0 stays free to
        mean "no text".

    Raises:
        InvalidInputError: if a row is not a string.
    """
    check_texts(texts, name)
    return np.fromiter(
        (_fingerprint_of(text) for text in texts), np.int64, len(texts)
    )


def _fingerprint_of(text: str | bytes) -> int:
    if isinstance(text, bytes):
        text = text.decode("utf-8", errors="replace")
    canonical = " ".join(unicodedata.normalize("NFC", text).split())
    digest = hashlib.blake2b(
        canonical.encode("utf-8", errors="surrogatepass"), digest_size=8
    ).digest()
    return max(int.from_bytes(digest, "big") & _LARGEST_INT64, 1)
