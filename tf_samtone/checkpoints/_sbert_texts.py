"""How a sentence-transformers folder treats texts: lengths and prompts."""

import pathlib
from typing import Any

from tf_samtone.checkpoints._sbert_modules import SbertTower
from tf_samtone.checkpoints._sbert_settings import read_optional
from tf_samtone.errors import CorruptFileError, MismatchError

__all__ = ["read_lengths", "read_prefixes"]

# T5 was trained at this length; the tokenizer of a folder that names none
# would not cut at all.
_DEFAULT_LENGTH = 512
_LONGEST = 1_000_000
# Settings of the Transformer module by which it gives other embeddings.
_BUILT = {
    "do_lower_case": False,
    "transformer_task": "feature-extraction",
    "module_output_name": "token_embeddings",
    "processing_kwargs": {},
    "query_expansion": None,
}


def read_lengths(towers: list[SbertTower]) -> dict[str, int]:
    """Return the tokens of a query and of a document, with `</s>`.

    Args:
        towers: the towers of a folder.

    Returns:
        dict of `query_length` and `document_length`: those names in
        `sentence_bert_config.json`, else `max_seq_length`, else the
        tokenizer's `model_max_length`, else 512.

    Raises:
        CorruptFileError: if a length is no int > 0.
        MismatchError: if the module treats texts as no `Tower` does.
    """
    return {
        name: _read_length(tower.folder, name)
        for name, tower in (
            ("query_length", towers[0]),
            ("document_length", towers[-1]),
        )
    }


def _read_length(folder: pathlib.Path, name: str) -> int:
    config = read_optional(folder / "sentence_bert_config.json")
    for key, built in _BUILT.items():
        if (config.get(key) or built) != built:
            raise MismatchError(
                f"Expected {key}={built!r} in the sentence_bert_config.json "
                f"of {folder}. Received: {key}={config[key]!r}. A model with "
                "this setting cannot be loaded."
            )
    found = [
        (key, value)
        for key, value in (
            (name, config.get(name)),
            *_tokenizer_options(config),
            ("max_seq_length", config.get("max_seq_length")),
            *_tokenizer_options(
                {
                    "processor_kwargs": read_optional(
                        folder / "tokenizer_config.json"
                    )
                }
            ),
        )
        if value is not None
    ]
    key, length = next(iter(found), (name, _DEFAULT_LENGTH))
    # transformers writes 1e30 for "no limit".
    if isinstance(length, int) and length > _LONGEST:
        return _DEFAULT_LENGTH
    if type(length) is not int or length < 1:
        raise CorruptFileError(
            f"Expected `{key}`, an integer > 0, in {folder}. Received: "
            f"{key}={length!r}. Get the file again."
        )
    return length


def _tokenizer_options(config: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the tokenizer's length, under either name of its options."""
    key = "model_max_length"
    options = [
        config.get(name) for name in ("processor_kwargs", "tokenizer_args")
    ]
    return [(key, o.get(key)) for o in options if isinstance(o, dict)]


def read_prefixes(
    directory: pathlib.Path, towers: list[SbertTower]
) -> dict[str, str]:
    """Return what `encode_query` and `encode_document` put before a text.

    These know the prompts "query" and "document" only. They have room for
    "passage", "corpus" and the default prompt, but come to none of them: a
    folder without "document" gets an empty one when it is loaded.

    Args:
        directory: folder with `modules.json`.
        towers: its towers.

    Returns:
        dict of `query_prefix` and `document_prefix`.

    Raises:
        CorruptFileError: if the prompts are malformed.
        MismatchError: if prompts do not count in the pooling, or embeddings
            are to be cut to fewer dimensions.
    """
    path = directory / "config_sentence_transformers.json"
    config = read_optional(path)
    prompts = config.get("prompts") or {}
    if not isinstance(prompts, dict) or not all(
        text is None or isinstance(text, str) for text in prompts.values()
    ):
        raise CorruptFileError(
            f"Expected `prompts`, names to texts, in {path}. Received: "
            f"prompts={prompts!r}. Get the file again."
        )
    if config.get("truncate_dim") is not None:
        raise MismatchError(
            f"Expected embeddings of full width in {path}. Received: "
            f"truncate_dim={config['truncate_dim']!r}. A model that cuts its "
            "embeddings cannot be loaded."
        )
    prefixes = {
        f"{side}_prefix": prompts.get(side) or ""
        for side in ("query", "document")
    }
    if any(prefixes.values()) and not all(t.includes_prompt for t in towers):
        raise MismatchError(
            f"Expected prompts that count in the pooling in {directory}. "
            f"Received: include_prompt=false, prompts={prompts!r}. Such a "
            "model cannot be loaded."
        )
    return prefixes
