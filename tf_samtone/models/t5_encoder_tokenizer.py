"""The tokenizer that KerasHub finds for presets of a `T5Encoder`."""

import keras
import keras_hub

from tf_samtone.models.t5_encoder import T5Encoder


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5EncoderTokenizer(keras_hub.models.T5Tokenizer):
    """`T5Tokenizer`, for presets whose backbone is a `T5Encoder`.

    KerasHub looks a tokenizer up by the backbone of the preset, and its own
    class names `T5Backbone`. Nothing else differs: a preset's `tokenizer.json`
    may name either.

    Args:
        proto: see `keras_hub.models.T5Tokenizer`.
        **kwargs: see `keras_hub.models.T5Tokenizer`.
    """

    backbone_cls = T5Encoder
