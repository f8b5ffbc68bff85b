"""How a sentence-transformers folder treats texts: lengths and prompts."""

import pathlib
from typing import Any

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._sbert_modules import SbertTower
from tf_samtone.errors import CorruptFileError, MismatchError

# T5 was trained at this length; the tokenizer of a folder that names none
# would not cut at all.
_DEFAULT_LENGTH = 512
_LONGEST = 1_000_000
_QUERY_PROMPTS = ("query",)
_DOCUMENT_PROMPTS = ("document", "passage", "corpus")


def read_max_length(folder: pathlib.Path) -> int:
    """Return the tokens of a text, with `</s>`.

    Args:
        folder: of a Transformer module.

    Returns:
        int: `max_seq_length`, else the tokenizer's `model_max_length`, else
        512.

    Raises:
        CorruptFileError: if the length is no int > 0.
        MismatchError: if texts are to be lowercased.
    """
    config = _optional(folder / "sentence_bert_config.json")
    if config.get("do_lower_case"):
        raise MismatchError(
            f"Expected do_lower_case=false in {folder}. Received: "
            "do_lower_case=true. A tokenizer that lowercases cannot be loaded."
        )
    length = config.get("max_seq_length")
    if length is None:
        length = _optional(folder / "tokenizer_config.json").get(
            "model_max_length"
        )
    # transformers writes 1e30 for "no limit".
    if length is None or (isinstance(length, int) and length > _LONGEST):
        return _DEFAULT_LENGTH
    if type(length) is not int or length < 1:
        raise CorruptFileError(
            f"Expected `max_seq_length`, an integer > 0, in {folder}. "
            f"Received: max_seq_length={length!r}. Get the file again."
        )
    return length


def read_prefixes(
    directory: pathlib.Path, towers: list[SbertTower]
) -> dict[str, str]:
    """Return what `encode_query` and `encode_document` put before a text.

    Args:
        directory: folder with `modules.json`.
        towers: its towers.

    Returns:
        dict of `query_prefix` and `document_prefix`.

    Raises:
        CorruptFileError: if the prompts are malformed.
        MismatchError: if prompts do not count in the pooling.
    """
    path = directory / "config_sentence_transformers.json"
    config = _optional(path)
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(
        isinstance(text, str) for text in prompts.values()
    ):
        raise CorruptFileError(
            f"Expected `prompts`, names to texts, in {path}. Received: "
            f"prompts={prompts!r}. Get the file again."
        )
    default = prompts.get(config.get("default_prompt_name"), "")
    prefixes = {
        side: next((prompts[n] for n in names if n in prompts), default)
        for side, names in (
            ("query_prefix", _QUERY_PROMPTS),
            ("document_prefix", _DOCUMENT_PROMPTS),
        )
    }
    if any(prefixes.values()) and not all(t.includes_prompt for t in towers):
        raise MismatchError(
            f"Expected prompts that count in the pooling in {directory}. "
            f"Received: include_prompt=false, prompts={prompts!r}. Such a "
            "model cannot be loaded."
        )
    return prefixes


def _optional(path: pathlib.Path) -> dict[str, Any]:
    return read_json_object(path) if path.is_file() else {}
