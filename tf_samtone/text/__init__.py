"""Text to tokens: preprocessing, vocabularies and text fingerprints."""

from typing import TYPE_CHECKING

from tf_samtone._lazy import lazy_members

# Imported when first used: vocabularies are also inspected by programs that
# have no need of TensorFlow.
if TYPE_CHECKING:
    from tf_samtone.text.fingerprint import fingerprint
    from tf_samtone.text.row_packing import pack_rows
    from tf_samtone.text.text_preprocessor import TextPreprocessor
    from tf_samtone.text.tokenizer_files import (
        load_tokenizer,
        save_tokenizer,
    )
    from tf_samtone.text.train_tokenizer import train_tokenizer

__all__ = [
    "TextPreprocessor",
    "fingerprint",
    "load_tokenizer",
    "pack_rows",
    "save_tokenizer",
    "train_tokenizer",
]

__getattr__, __dir__ = lazy_members(
    __name__,
    {
        "TextPreprocessor": "text_preprocessor",
        "fingerprint": "fingerprint",
        "load_tokenizer": "tokenizer_files",
        "pack_rows": "row_packing",
        "save_tokenizer": "tokenizer_files",
        "train_tokenizer": "train_tokenizer",
    },
)
