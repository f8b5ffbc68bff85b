"""A vocabulary that outlives `tf.random.set_seed`."""

import hashlib

import keras_hub
import tensorflow as tf

__all__ = ["keep_vocabulary_alive"]


def keep_vocabulary_alive(tokenizer: keras_hub.models.T5Tokenizer) -> None:
    """Gives the tokenizer's vocabulary a name of its own in TensorFlow.

    tensorflow-text 2.20 ties an unnamed vocabulary to the kernel that made it,
    and `tf.random.set_seed` (so `keras.utils.set_random_seed` too) clears
    TensorFlow's cache of kernels: every later call in a graph would fail with
    NotFoundError. A named resource stays. Calling this twice changes nothing.

    Args:
        tokenizer: `keras_hub.models.T5Tokenizer`; changed in place.
    """
    from tensorflow_text.python.ops import sentencepiece_tokenizer

    resource = tokenizer._sentence_piece._model_resource
    digest = hashlib.sha256(resource._model).hexdigest()
    create = sentencepiece_tokenizer.gen_sentencepiece_tokenizer
    with tf.init_scope():
        resource._resource_handle = create.sentencepiece_op(
            model=resource._model, shared_name=f"tf_samtone/{digest}"
        )
