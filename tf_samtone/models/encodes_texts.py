"""Texts to embeddings, for models of two towers."""

from typing import Any

import numpy as np
import tensorflow as tf

from tf_samtone.models.text_encoding import encode_texts, texts_of_dataset


class EncodesTexts:
    """The methods of a dual encoder that turn texts into embeddings.

    Attributes:
        query_tower: `Tower`.
        document_tower: `Tower`.
        query_preprocessor: `TextPreprocessor`.
        document_preprocessor: `TextPreprocessor`.
    """

    query_tower: Any
    _encode_functions: dict[tuple[str, bool], Any]

    @property
    def dim(self):
        """Width of the embeddings, an int."""
        return self.query_tower.dim

    def encode_queries(self, queries, *, packing=None, show_progress=False):
        """Encodes queries.

        Args:
            queries: list of strings, or a `tf.data.Dataset` of strings, scalar
                or `[batch]`.
            packing: str or `None`. `"rows"` puts several texts in one row, for
                devices that want one shape; `None` sorts by length. Equal
                embeddings. Defaults to `None`.
            show_progress: bool. Defaults to `False`.

        Returns:
            float32 `[n, dim]`, unit vectors unless the model does
            not normalise.
        """
        return self._encode("query", queries, packing, show_progress)

    def encode_documents(self, documents, *, packing=None, show_progress=False):
        """Encodes documents; see `encode_queries`."""
        return self._encode("document", documents, packing, show_progress)

    def similarity(self, query_embeddings, document_embeddings):
        """Returns float32 `[num_queries, num_documents]`, the cosines.

        Args:
            query_embeddings: float32 `[num_queries, dim]`, unit vectors.
            document_embeddings: float32 `[num_documents, dim]`.
        """
        return np.matmul(
            np.asarray(query_embeddings), np.asarray(document_embeddings).T
        )

    def _encode(self, side, texts, packing, show_progress):
        if isinstance(texts, tf.data.Dataset):
            texts = texts_of_dataset(texts)
        preprocessor = getattr(self, f"{side}_preprocessor")
        return encode_texts(
            self._encode_function(side, is_packed=packing is not None),
            preprocessor,
            texts,
            dim=self.dim,
            packing=packing,
            show_progress=show_progress,
            description=f"encode {side} texts",
        )

    def _encode_function(self, side, *, is_packed=False):
        """Returns the traced tower; one trace serves every shape."""
        key = (side, is_packed)
        if key not in self._encode_functions:
            tower = getattr(self, f"{side}_tower")
            tokens = tf.TensorSpec([None, None], tf.int32)
            signature = {"token_ids": tokens, "padding_mask": tokens}
            if is_packed:
                signature = {
                    "token_ids": tokens,
                    "segment_ids": tokens,
                    "lengths": tf.TensorSpec([None], tf.int32),
                }
            self._encode_functions[key] = tf.function(
                lambda features: tower(features, training=False),
                input_signature=[signature],
                autograph=False,
            )
        return self._encode_functions[key]
