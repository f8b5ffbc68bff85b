"""A T5 tokenizer in the files that Hugging Face's libraries read."""

import base64
import pathlib
from typing import Any

from tf_samtone.checkpoints._json_file import write_json
from tf_samtone.errors import InvalidInputError

__all__ = ["check_foreign_tokenizer", "write_foreign_tokenizer"]

_UNIGRAM = 1
_UNUSED_PIECE = 5
_SPECIAL_TOKENS = {
    "eos_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
}
_FIRST_PIECES = ["<pad>", "</s>", "<unk>"]
_WORD_MARK = "\u2581"
# What the Hugging Face tokenizer of T5 takes for granted.
_ASSUMED = {
    "trainer_spec.model_type": _UNIGRAM,
    "trainer_spec.byte_fallback": False,
    "trainer_spec.treat_whitespace_as_suffix": False,
    "normalizer_spec.add_dummy_prefix": True,
    "normalizer_spec.remove_extra_whitespaces": True,
    "normalizer_spec.escape_whitespaces": True,
}


def check_foreign_tokenizer(tokenizer: Any) -> None:
    """Raise `InvalidInputError` for a vocabulary that T5 there cannot be.

    Args:
        tokenizer: `keras_hub.models.T5Tokenizer`.

    Raises:
        InvalidInputError: if its segmentation or its handling of spaces is
            not T5's; every such option is named.
    """
    _checked_model(tokenizer)


def write_foreign_tokenizer(
    directory: pathlib.Path, tokenizer: Any, max_length: int
) -> None:
    """Write the tokenizer as `transformers` and `tokenizers` read it.

    `spiece.model` is the vocabulary. `tokenizer.json` says the same without
    need of the sentencepiece package. There are no sentinels `<extra_id_0>`
    and so on: ids are those of the vocabulary, and none is beyond the
    embedding table.

    Args:
        directory: folder to write to.
        tokenizer: `keras_hub.models.T5Tokenizer`.
        max_length: int. Tokens of a text with `</s>`; longer ones are cut.

    Raises:
        InvalidInputError: see `check_foreign_tokenizer`.
    """
    model = _checked_model(tokenizer)
    (directory / "spiece.model").write_bytes(tokenizer.proto)
    write_json(directory / "tokenizer.json", _tokenizer_json(model))
    write_json(directory / "special_tokens_map.json", _SPECIAL_TOKENS)
    write_json(
        directory / "tokenizer_config.json",
        {
            **_SPECIAL_TOKENS,
            "extra_ids": 0,
            "model_max_length": max_length,
            "tokenizer_class": "T5Tokenizer",
        },
    )


def _checked_model(tokenizer: Any) -> Any:
    """Return the message of `sentencepiece_model.proto`."""
    # Slow to import; only needed here.
    from sentencepiece import sentencepiece_model_pb2

    # The generated module makes its classes when it is imported.
    message: Any = sentencepiece_model_pb2
    model = message.ModelProto.FromString(tokenizer.proto)
    wrong = []
    for name, expected in _ASSUMED.items():
        part, field = name.split(".")
        value = getattr(getattr(model, part), field)
        if value != expected:
            wrong.append(f"{name}={value!r} (T5: {expected!r})")
    first = [piece.piece for piece in model.pieces[:3]]
    if first != _FIRST_PIECES:
        wrong.append(f"first pieces {first} (T5: {_FIRST_PIECES})")
    unused = [p.piece for p in model.pieces if p.type == _UNUSED_PIECE]
    if unused:
        wrong.append(f"unused pieces {unused[:5]}")
    if wrong:
        raise InvalidInputError(
            "Expected a SentencePiece model with the options of T5's, which "
            "Hugging Face's T5 tokenizer takes for granted. Received: "
            f"{', '.join(wrong)}. Train the vocabulary with "
            "tf_samtone.text.train_tokenizer, or export a SavedModel."
        )
    return model


def _tokenizer_json(model: Any) -> dict[str, Any]:
    """Say in the terms of `tokenizers` what SentencePiece does, in order."""
    word_marks = {
        "type": "Metaspace",
        "replacement": _WORD_MARK,
        "prepend_scheme": "always",
        "split": True,
    }
    pieces = [[piece.piece, piece.score] for piece in model.pieces]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": i,
                "content": pieces[i][0],
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for i in range(len(_FIRST_PIECES))
        ],
        "normalizer": _normalizer(model.normalizer_spec.precompiled_charsmap),
        "pre_tokenizer": word_marks,
        "post_processor": _post_processor(),
        "decoder": word_marks,
        "model": {
            "type": "Unigram",
            "unk_id": model.trainer_spec.unk_id,
            "vocab": pieces,
            "byte_fallback": False,
        },
    }


def _normalizer(charsmap: bytes) -> dict[str, Any]:
    steps: list[dict[str, Any]] = []
    if charsmap:
        text = base64.b64encode(charsmap).decode("ascii")
        steps.append({"type": "Precompiled", "precompiled_charsmap": text})
    for pattern, content in ((r"\A +| +\z", ""), (" {2,}", " ")):
        steps.append(
            {
                "type": "Replace",
                "pattern": {"Regex": pattern},
                "content": content,
            }
        )
    return {"type": "Sequence", "normalizers": steps}


def _post_processor() -> dict[str, Any]:
    end = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    first, second = (
        {"Sequence": {"id": name, "type_id": 0}} for name in ("A", "B")
    )
    return {
        "type": "TemplateProcessing",
        "single": [first, end],
        "pair": [first, end, second, end],
        "special_tokens": {
            "</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]}
        },
    }
