"""Texts to the inputs of a `T5TextEmbedder`, in KerasHub's terms."""

import keras
import keras_hub
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.t5_encoder_tokenizer import T5EncoderTokenizer
from tf_samtone.text import TextPreprocessor


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5TextEmbedderPreprocessor(keras_hub.models.TextEmbedderPreprocessor):
    """Turns texts into `token_ids` and `padding_mask`, as in training.

    A row is `tokens </s>`, by `tf_samtone.text.TextPreprocessor`. (The class
    above it would put a start token in front too, for which T5's tokenizer
    names `</s>`.) Works eagerly and in `tf.data`.

    Args:
        tokenizer: `keras_hub.models.T5Tokenizer`.
        sequence_length: int. Tokens per row including `</s>`. Defaults to
            `256`.
        prefix: str. Put before every text. Defaults to `""`.
        **kwargs: see `keras_hub.models.Preprocessor`.

    Call arguments:
        x: str, list of str, or string tensor, scalar or `[batch]`.
        y: anything, or `None`; passed through.
        sample_weight: anything, or `None`; passed through.

    Returns:
        dict of `"token_ids"` and `"padding_mask"`, both int32
        `[batch, sequence_length]`, or `[sequence_length]` for one text; as
        `(x, y)` or `(x, y, sample_weight)` if these were given.

    Raises:
        InvalidInputError: if the length or the prefix cannot be used, or when
            called on anything but texts.
    """

    backbone_cls = T5Encoder
    tokenizer_cls = T5EncoderTokenizer

    def __init__(self, tokenizer, sequence_length=256, prefix="", **kwargs):
        self.prefix = prefix
        super().__init__(tokenizer, sequence_length=sequence_length, **kwargs)
        # Out of a preset it comes without its vocabulary.
        if tokenizer.proto is not None:
            self._prepare()

    @property
    def sequence_length(self):
        """Tokens per row."""
        return self._sequence_length

    @sequence_length.setter
    def sequence_length(self, value):
        self._sequence_length = value
        self._text_preprocessor = None

    @property
    def text_preprocessor(self):
        """The `TextPreprocessor` that does the work."""
        if self._text_preprocessor is None:
            self._prepare()
        return self._text_preprocessor

    def build(self, input_shape=None):
        self.built = True

    def call(self, x, y=None, sample_weight=None):
        features = self._features(x)
        return keras.utils.pack_x_y_sample_weight(features, y, sample_weight)

    def load_preset_assets(self, preset):
        super().load_preset_assets(preset)
        self._text_preprocessor = None

    def get_config(self):
        config = super().get_config()
        # There is one segment, so nothing to share the length between.
        config.pop("truncate")
        return {
            **config,
            "sequence_length": self.sequence_length,
            "prefix": self.prefix,
        }

    def _prepare(self):
        self._text_preprocessor = TextPreprocessor(
            self.tokenizer, self.sequence_length, self.prefix
        )

    def _features(self, x):
        if isinstance(x, tuple):
            if len(x) != 1:
                raise InvalidInputError(
                    "Expected one text per row. Received: "
                    f"{len(x)} segments. Join them before."
                )
            (x,) = x
        if isinstance(x, str | bytes):
            x = [x]
            is_scalar = True
        else:
            is_scalar = tf.is_tensor(x) and x.shape.rank == 0
            x = x[None] if is_scalar else x
        features = self.text_preprocessor(x)
        if is_scalar:
            return {name: feature[0] for name, feature in features.items()}
        return features
