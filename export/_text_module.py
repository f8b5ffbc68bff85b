"""The object that a text-in SavedModel restores to."""

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tf_samtone.models import DualEncoder
from tf_samtone.text import TextPreprocessor

Features = Mapping[str, tf.Tensor]


class TextModule(tf.train.Checkpoint):
    """A dual encoder in the shape of a reusable TF Hub text model.

    A `tf.train.Checkpoint` and not a `tf.Module`, because only the former
    saves `variables` and `trainable_variables` as attributes (seen in
    TensorFlow 2.20).

    Args:
        model: `DualEncoder`, built.

    Attributes:
        variables: list of `tf.Variable`, all weights of the towers.
        trainable_variables: list of `tf.Variable`, the trained ones.
        serve: the same as `__call__`, under the name that
            `keras.layers.TFSMLayer(call_endpoint="serve")` looks for.

    Call arguments:
        inputs: string `[batch]`.

    Returns:
        float32 `[batch, dim]`, encoded as queries.
    """

    def __init__(self, model: DualEncoder) -> None:
        super().__init__()
        # Tracked, or saving fails with an untracked tokenizer resource.
        self.query_preprocessor = model.query_preprocessor
        self.document_preprocessor = model.document_preprocessor
        self.variables = _tf_variables(model.weights)
        self.trainable_variables = _tf_variables(model.trainable_weights)
        self._queries = _encoder(model.query_preprocessor, model.query_tower)
        self._documents = _encoder(
            model.document_preprocessor, model.document_tower
        )
        self.__call__ = _text_function(self._queries)
        self.serve = self.__call__

    def serving_signatures(self) -> dict[str, Any]:
        """Makes the functions for `tf.saved_model.save(signatures=...)`.

        Returns:
            dict of tf.function, each from `inputs`, string `[batch]`, to
            `{"embeddings": float32 [batch, dim]}`.
        """
        return {
            "serving_default": _signature(self._queries),
            "encode_queries": _signature(self._queries),
            "encode_documents": _signature(self._documents),
        }


def _tf_variables(variables: list[Any]) -> list[tf.Variable]:
    """Unwraps Keras variables, which a SavedModel cannot hold."""
    return [variable.value for variable in variables]


def _text_function(function: Callable[[tf.Tensor], Any]) -> Any:
    spec = tf.TensorSpec([None], tf.string, name="inputs")
    return tf.function(function, input_signature=[spec], autograph=False)


def _signature(encode: Callable[[tf.Tensor], tf.Tensor]) -> Any:
    return _text_function(lambda inputs: {"embeddings": encode(inputs)})


def _encoder(
    preprocessor: TextPreprocessor, tower: Callable[..., tf.Tensor]
) -> Callable[[tf.Tensor], tf.Tensor]:
    """Joins the text pipeline and a tower to one function of strings."""

    def encode(inputs: tf.Tensor) -> tf.Tensor:
        features = _without_common_padding(preprocessor(inputs))
        return tower(features, training=False)

    return encode


def _without_common_padding(features: Features) -> Features:
    """Cuts the columns that are padding in every row.

    Embeddings do not depend on padding, but the time to compute them does:
    a served batch costs as much as its longest text, not as the limit.
    """
    lengths = tf.reduce_sum(features["padding_mask"], axis=1)
    # An empty batch has no longest row; one column keeps its shape legal.
    longest = tf.reduce_max(tf.concat([lengths, [1]], axis=0))
    return {name: value[:, :longest] for name, value in features.items()}
