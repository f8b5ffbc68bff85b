"""From strings to fixed-length token features, inside the graph."""

from collections.abc import Sequence
from typing import Any

import keras_hub
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.text._inputs import to_string_tensor
from tf_samtone.text._vocabulary_resource import keep_vocabulary_alive

_BYTES_PER_TOKEN = 64
_LEAST_MAXIMUM_BYTES = 4096


class TextPreprocessor(tf.Module):
    """Turns texts into `token_ids` and `padding_mask` of one fixed length.

    A row is `tokens </s>`, cut so that `</s>` is always kept, then padded.
    (KerasHub's own packers would also put `</s>` in front, because its
    T5 tokenizer names `</s>` as start token; GTR and Sentence-T5 have none.)
    The empty text is a lone `</s>`. Invalid UTF-8 is replaced by U+FFFD
    before tokenizing, eagerly and in a graph alike: both run the same
    function. The mask comes from the row lengths, not from `id != pad`.

    Only the first `maximum_bytes` of a text are read, so that one huge row
    cannot stall a pipeline. That is 64 bytes for each token kept, and at
    least 4096; ordinary text has 4 to 5 bytes per token.

    ```python
    tokenizer = tf_samtone.text.load_tokenizer("vocabulary.spm")
    preprocessor = tf_samtone.text.TextPreprocessor(tokenizer, 64)
    features = preprocessor(["a question"])
    features["token_ids"].shape                             # (1, 64)
    tf.data.Dataset.from_tensor_slices(texts).batch(8).map(preprocessor)
    ```

    Args:
        tokenizer: `keras_hub.models.T5Tokenizer` that returns integers and
            does not pad (its defaults).
        sequence_length: int. Tokens per row including `</s>`, at least 1.
        prefix: str. Put before every text, as it is; counts towards the
            length. Defaults to `""`.
        name: str. A Python identifier. Defaults to `"text_preprocessor"`.

    Attributes:
        tokenizer: the tokenizer; a tracked object, so a SavedModel that holds
            this module also holds the vocabulary.
        sequence_length: int, tokens per row.
        prefix: str, put before every text.
        maximum_bytes: int, bytes read of each text with its prefix.

    Call arguments:
        texts: string tensor `[batch]`, or a list of strings.

    Returns:
        dict with `"token_ids"` and `"padding_mask"`, both int32
        `[batch, sequence_length]`; the mask is 1 for a real token.

    Raises:
        InvalidInputError: if the tokenizer or the length cannot be used, or
            when called on anything but texts (the message names the row).
    """

    def __init__(
        self,
        tokenizer: keras_hub.models.T5Tokenizer,
        sequence_length: int,
        prefix: str = "",
        name: str = "text_preprocessor",
    ) -> None:
        super().__init__(name=name)
        _check_tokenizer(tokenizer)
        _check_length(sequence_length)
        _check_prefix(prefix)
        keep_vocabulary_alive(tokenizer)
        self.tokenizer = tokenizer
        self.sequence_length = int(sequence_length)
        self.prefix = prefix
        self.maximum_bytes = max(
            _LEAST_MAXIMUM_BYTES, _BYTES_PER_TOKEN * self.sequence_length
        )
        self._end_id = int(tokenizer.end_token_id)
        self._pad_id = int(tokenizer.pad_token_id)
        # KerasHub tokenizes eager input with the sentencepiece package, which
        # raises on malformed bytes. Always tracing gives one behaviour.
        self._pieces = tf.function(
            self._pieces_in_graph,
            input_signature=[tf.TensorSpec([None], tf.string)],
        )

    def __call__(
        self, texts: tf.Tensor | Sequence[str]
    ) -> dict[str, tf.Tensor]:
        strings = to_string_tensor(texts)
        features = self.pack(self.tokenize(strings))
        # A batch size known to tf.data survives; TPUs and XLA want it.
        shape = [strings.shape[0], self.sequence_length]
        return {
            name: tf.ensure_shape(feature, shape)
            for name, feature in features.items()
        }

    def tokenize(self, texts: tf.Tensor | Sequence[str]) -> tf.RaggedTensor:
        """Tokenizes and truncates, without padding.

        Args:
            texts: string tensor `[batch]`, or a list of strings.

        Returns:
            int32 ragged `[batch, 1 <= length <= sequence_length]`; the last
            token of every row is `</s>`.
        """
        pieces = self._pieces(to_string_tensor(texts))
        pieces = pieces[:, : self.sequence_length - 1]
        ends = tf.fill([pieces.nrows(), 1], self._end_id)
        return tf.concat([pieces, ends], axis=1)

    def pack(self, tokens: tf.RaggedTensor) -> dict[str, tf.Tensor]:
        """Pads what `tokenize` returned to the fixed length.

        Args:
            tokens: int32 ragged `[batch, (length)]`.

        Returns:
            the features of `__call__`.
        """
        return {
            "token_ids": tokens.to_tensor(
                default_value=self._pad_id, shape=[None, self.sequence_length]
            ),
            "padding_mask": tf.sequence_mask(
                tokens.row_lengths(), self.sequence_length, dtype=tf.int32
            ),
        }

    def count_changes(self, texts: tf.Tensor | Sequence[str]) -> dict[str, int]:
        """Counts the texts that do not survive preprocessing whole.

        Args:
            texts: string tensor `[batch]`, or a list of strings. Eager only.

        Returns:
            `{"truncated": rows that lost tokens, "invalid_utf8": rows in
            which bytes were replaced}`.
        """
        strings = to_string_tensor(texts)
        lengths = self._pieces(strings).row_lengths()
        strings = self._with_prefix(strings)
        cut = (lengths > self.sequence_length - 1) | (
            tf.strings.length(strings) > self.maximum_bytes
        )
        invalid = strings != _valid_utf8(strings)
        return {
            "truncated": int(tf.math.count_nonzero(cut)),
            "invalid_utf8": int(tf.math.count_nonzero(invalid)),
        }

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments, without the tokenizer, as JSON values."""
        return {
            "sequence_length": self.sequence_length,
            "prefix": self.prefix,
            "name": self.name,
        }

    @classmethod
    def from_config(
        cls,
        config: dict[str, Any],
        tokenizer: keras_hub.models.T5Tokenizer,
    ) -> "TextPreprocessor":
        """Rebuilds a preprocessor from `get_config()` and its tokenizer."""
        return cls(tokenizer, **config)

    def _pieces_in_graph(self, strings: tf.Tensor) -> tf.RaggedTensor:
        strings = self._with_prefix(strings)
        head = tf.strings.substr(strings, 0, self.maximum_bytes)
        return self.tokenizer(_valid_utf8(head))

    def _with_prefix(self, strings: tf.Tensor) -> tf.Tensor:
        return (
            tf.strings.join([self.prefix, strings])
            if self.prefix
            else (strings)
        )


def _valid_utf8(strings: tf.Tensor) -> tf.Tensor:
    # `replace_control_characters` would change valid text: left off.
    return tf.strings.unicode_transcode(
        strings, "UTF-8", "UTF-8", errors="replace"
    )


def _check_tokenizer(tokenizer: object) -> None:
    expected = "Expected `tokenizer` to be a keras_hub.models.T5Tokenizer"
    if not isinstance(tokenizer, keras_hub.models.T5Tokenizer):
        raise InvalidInputError(
            f"{expected}. Received: tokenizer={tokenizer!r}. Make one with "
            "tf_samtone.text.load_tokenizer(path)."
        )
    settings = {
        "dtype": tokenizer.compute_dtype,
        "sequence_length": tokenizer.sequence_length,
        "add_bos": tokenizer.add_bos,
        "add_eos": tokenizer.add_eos,
    }
    plain = {
        "dtype": "int32",
        "sequence_length": None,
        "add_bos": False,
        "add_eos": False,
    }
    if settings != plain:
        raise InvalidInputError(
            f"{expected} with its default options {plain}, since this class "
            f"adds </s> and pads. Received: {settings}. Build the tokenizer "
            "with nothing but its proto."
        )


def _check_length(sequence_length: object) -> None:
    if (
        isinstance(sequence_length, bool)
        or not isinstance(sequence_length, int)
        or sequence_length < 1
    ):
        raise InvalidInputError(
            "Expected `sequence_length` to be an int of at least 1 (room for "
            f"</s>). Received: sequence_length={sequence_length!r}. Pass the "
            "number of tokens per text, e.g. 64."
        )


def _check_prefix(prefix: object) -> None:
    if not isinstance(prefix, str):
        raise InvalidInputError(
            f"Expected `prefix` to be a str. Received: prefix={prefix!r}. "
            'Pass "" for none.'
        )
