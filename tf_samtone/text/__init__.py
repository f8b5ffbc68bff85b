"""Text to tokens: preprocessing, vocabularies and text fingerprints."""

from tf_samtone.text.fingerprint import fingerprint
from tf_samtone.text.row_packing import pack_rows
from tf_samtone.text.text_preprocessor import TextPreprocessor
from tf_samtone.text.tokenizer_files import load_tokenizer, save_tokenizer
from tf_samtone.text.train_tokenizer import train_tokenizer

__all__ = [
    "TextPreprocessor",
    "fingerprint",
    "load_tokenizer",
    "pack_rows",
    "save_tokenizer",
    "train_tokenizer",
]
