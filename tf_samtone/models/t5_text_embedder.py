"""One tower as a text embedder of KerasHub."""

import keras
import keras_hub
import tensorflow as tf
from keras import ops

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.architectures import check_projection_dim
from tf_samtone.models.l2_normalization import L2Normalization
from tf_samtone.models.masked_mean_pooling import MaskedMeanPooling
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.t5_text_embedder_preprocessor import (
    T5TextEmbedderPreprocessor,
)
from tf_samtone.models.tower import projection_layer
from tf_samtone.text import TextPreprocessor
from tf_samtone.text._inputs import to_string_tensor


@keras.saving.register_keras_serializable(package="tf_samtone")
class T5TextEmbedder(keras_hub.models.TextEmbedder):
    """Encoder, masked mean, projection, unit length, as a KerasHub task.

    What `tf_samtone.checkpoints.save_keras_hub_preset` writes. Importing the
    class is enough for `keras_hub.models.TextEmbedder.from_preset(folder)`.

    Args:
        backbone: `T5Encoder`.
        preprocessor: `T5TextEmbedderPreprocessor` or `None`. That of queries,
            if documents differ. Defaults to `None`.
        projection_dim: int. Width of the embeddings; 0 for that of the
            backbone. Defaults to `0`.
        projection_bias: bool. Defaults to `False`.
        projection_activation: str or `None`. Name of a Keras activation.
            Defaults to `None`, a linear layer.
        pooling_mode: str. `"mean"`, which is the only one.
        normalize: bool. Scales embeddings to unit length. Defaults to `True`.
        document_length: int or `None`. Tokens of a document. Defaults to
            `None`, the length of the preprocessor.
        document_prefix: str or `None`. Put before every document. Defaults to
            `None`, the prefix of the preprocessor.
        **kwargs: see `keras_hub.models.Task`.

    Call arguments:
        inputs: dict of `token_ids` and `padding_mask`, int32 `[batch, seq]`.

    Returns:
        float32 `[batch, dim]`.

    Raises:
        InvalidInputError: if an option is out of range.
    """

    backbone_cls = T5Encoder
    preprocessor_cls = T5TextEmbedderPreprocessor

    def __init__(
        self,
        backbone,
        preprocessor=None,
        projection_dim=0,
        projection_bias=False,
        projection_activation=None,
        pooling_mode="mean",
        normalize=True,
        document_length=None,
        document_prefix=None,
        **kwargs,
    ):
        if pooling_mode != "mean":
            raise InvalidInputError(
                "Expected pooling_mode='mean'. Received: "
                f"pooling_mode={pooling_mode!r}. Leave the argument out."
            )
        check_projection_dim(projection_dim)
        # === Layers ===
        self.backbone = backbone
        self.preprocessor = preprocessor
        self.pooling = MaskedMeanPooling(name="pooling")
        self.projection = None
        if projection_dim:
            self.projection = projection_layer(
                projection_dim,
                use_bias=projection_bias,
                activation=projection_activation,
            )

        # === Functional model ===
        inputs = backbone.input
        embeddings = self.pooling(
            backbone(inputs), padding_mask=inputs["padding_mask"]
        )
        if self.projection is not None:
            embeddings = self.projection(embeddings)
        if normalize:
            embeddings = L2Normalization(name="normalization")(embeddings)
        super().__init__(inputs=inputs, outputs=embeddings, **kwargs)

        # === Config ===
        self.projection_dim = projection_dim
        self.projection_bias = projection_bias
        self.projection_activation = projection_activation
        self.pooling_mode = pooling_mode
        self.normalize = normalize
        self.document_length = document_length
        self.document_prefix = document_prefix

    @property
    def dim(self):
        """Width of the embeddings, an int."""
        return self.projection_dim or self.backbone.hidden_dim

    def encode_text(self, text, **kwargs):
        """Encodes texts, as queries if documents differ from them.

        Args:
            text: str, or list of str.
            **kwargs: `batch_size`, int, `32` by default, and those of
                `keras.Model.predict`.

        Returns:
            float32 array `[n, dim]`.
        """
        return self._encode(self._query_preprocessor(), text, **kwargs)

    def encode_documents(self, documents, **kwargs):
        """Encodes documents; see `encode_text`."""
        queries = self._query_preprocessor()
        length, prefix = self.document_length, self.document_prefix
        preprocessor = TextPreprocessor(
            queries.tokenizer,
            queries.sequence_length if length is None else length,
            queries.prefix if prefix is None else prefix,
        )
        return self._encode(preprocessor, documents, **kwargs)

    def similarity(self, query_embeddings, document_embeddings):
        """Returns float32 `[num_queries, num_documents]`, inner products.

        Args:
            query_embeddings: float32 `[num_queries, dim]`.
            document_embeddings: float32 `[num_documents, dim]`.
        """
        return ops.matmul(
            ops.convert_to_tensor(query_embeddings),
            ops.transpose(ops.convert_to_tensor(document_embeddings)),
        )

    def get_config(self):
        return {
            **super().get_config(),
            "projection_dim": self.projection_dim,
            "projection_bias": self.projection_bias,
            "projection_activation": self.projection_activation,
            "pooling_mode": self.pooling_mode,
            "normalize": self.normalize,
            "document_length": self.document_length,
            "document_prefix": self.document_prefix,
        }

    def _query_preprocessor(self):
        if self.preprocessor is None:
            raise InvalidInputError(
                "Expected a model with a preprocessor. Received: "
                "preprocessor=None. Pass token ids to `predict` instead."
            )
        return self.preprocessor.text_preprocessor

    def _encode(self, preprocessor, texts, batch_size=32, **kwargs):
        texts = [texts] if isinstance(texts, str) else texts
        strings = to_string_tensor(texts)
        if not len(strings):
            return ops.convert_to_numpy(ops.zeros((0, self.dim), "float32"))
        dataset = tf.data.Dataset.from_tensor_slices(strings)
        # Mapped here, not by KerasHub, which would decode the strings in
        # Python first and stop at invalid UTF-8.
        features = dataset.batch(batch_size).map(
            preprocessor, num_parallel_calls=tf.data.AUTOTUNE
        )
        return keras.Model.predict(self, features, **kwargs)
