"""Query tower and document tower, trained together."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import ContrastiveLoss, contrastive_diagnostics
from tf_samtone.losses.diagnostics import DIAGNOSTICS
from tf_samtone.models import presets
from tf_samtone.models.architectures import build_towers
from tf_samtone.models.embedded_batch import EmbeddedBatch
from tf_samtone.models.log_mean import LogMean
from tf_samtone.models.pair_features import as_feature_dataset, checked_features
from tf_samtone.models.text_encoding import encode_texts, texts_of_dataset
from tf_samtone.text import TextPreprocessor


class DualEncoder(keras.Model):
    """Maps queries and documents to one space by T5 encoders.

    Make one with `from_preset` or `from_encoder`, then:

    >>> # model.compile(optimizer=ts.optimizers.Adafactor(1e-3),
    >>> #               loss=ts.losses.SamToNeLoss())
    >>> # model.fit(dataset)
    >>> # scores = model.similarity(model.encode_queries(["a question"]),
    >>> #                           model.encode_documents(["an answer"]))

    `fit` and `evaluate` take a `tf.data.Dataset` of feature dicts, as made by
    `tf_samtone.data.training_dataset`, or of `(queries, documents)` string
    pairs `[batch]`, which are tokenized on the way (row i of one belongs to
    row i of the other; equal texts are not negatives of each other).

    Args:
        query_tower: `Tower`.
        document_tower: `Tower`; the same object for a shared tower.
        query_preprocessor: `TextPreprocessor` with the queries' length.
        document_preprocessor: `TextPreprocessor` with the documents' length.
        architecture: str. How the towers share weights, see `build_towers`.
            Defaults to `"sde"`.
        **kwargs: see `keras.Model`.

    Call arguments:
        inputs: dict of `queries` and `documents`, each a dict of `token_ids`
            and `padding_mask`, int32 `[batch, seq]`.

    Returns:
        `(queries, documents)`, float32 `[batch, dim]` each, unit vectors.

    Reference:
        Ni et al., 2021, https://arxiv.org/abs/2112.07899; Moiseev et al.,
        2023, https://arxiv.org/abs/2306.02516
    """

    def __init__(
        self,
        query_tower,
        document_tower,
        query_preprocessor,
        document_preprocessor,
        architecture="sde",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.query_tower = query_tower
        self.document_tower = document_tower
        self.query_preprocessor = query_preprocessor
        self.document_preprocessor = document_preprocessor
        self.architecture = architecture
        self._encode_functions = {}
        self.contrastive_loss: Any = None
        self.in_batch_metrics = []
        self.diagnostics = []
        self.built = True

    @classmethod
    def from_encoder(
        cls,
        encoder,
        tokenizer,
        *,
        architecture="sde",
        projection_dim=768,
        query_length=64,
        document_length=256,
        **kwargs,
    ):
        """Builds a dual encoder around an encoder and its tokenizer.

        Args:
            encoder: `T5Encoder`.
            tokenizer: `keras_hub.models.T5Tokenizer`.
            architecture: str. `"sde"`, `"ade"`, `"ade-spl"`, `"ade-ste"` or
                `"ade-fte"`. Defaults to `"sde"`.
            projection_dim: int. Width of the embeddings. Defaults to `768`.
            query_length: int. Tokens of a query, with `</s>`. Defaults to `64`.
            document_length: int. Tokens of a document. Defaults to `256`.
            **kwargs: see `keras.Model`.

        Raises:
            InvalidInputError: if an option is out of range, or the tokenizer
                has more pieces than the encoder has embedding rows.
        """
        pieces = tokenizer.vocabulary_size()
        if pieces > encoder.vocabulary_size:
            raise InvalidInputError(
                "Expected an embedding row for each of the tokenizer's pieces."
                f" Received: {pieces} pieces, "
                f"vocabulary_size={encoder.vocabulary_size}. Use the tokenizer "
                "that belongs to the weights."
            )
        query_tower, document_tower = build_towers(
            encoder, architecture, projection_dim
        )
        return cls(
            query_tower,
            document_tower,
            TextPreprocessor(tokenizer, query_length),
            TextPreprocessor(tokenizer, document_length),
            architecture=architecture,
            **kwargs,
        )

    @classmethod
    def from_preset(
        cls,
        preset,
        architecture=None,
        projection_dim=None,
        query_length=None,
        document_length=None,
        dropout=None,
        dtype=None,
    ):
        """Loads a saved dual encoder, or starts one from T5 weights.

        Args:
            preset: str. A folder written by `save_to_preset`; a Hugging Face
                T5 folder (`config.json`, `model.safetensors`, `spiece.model`);
                or a KerasHub T5 preset, by name or folder.
            architecture: str or `None`. For T5 weights, defaults to `"sde"`. A
                saved dual encoder has its own; another one is an error.
            projection_dim: int or `None`. For T5 weights, defaults to `768`.
                A saved one has its own; another one is an error.
            query_length: int or `None`. Defaults to the saved value, or `64`.
            document_length: int or `None`. Defaults to the saved value, or
                `256`.
            dropout: float or `None`. Defaults to the saved value.
            dtype: str or dtype policy. Defaults to the global policy.

        Raises:
            InvalidInputError: if the preset is unknown or an argument
                contradicts it.
            CorruptFileError: if a file fails its checksum.
        """
        return presets.load(
            cls,
            preset,
            requested={
                "architecture": architecture,
                "projection_dim": projection_dim,
                "query_length": query_length,
                "document_length": document_length,
                "dropout": dropout,
            },
            dtype=dtype,
        )

    def save_to_preset(self, directory, *, overwrite=False):
        """Writes weights, config and vocabulary to a folder, atomically.

        Args:
            directory: str or path.
            overwrite: bool. Replaces a folder that is not empty. Defaults to
                `False`.

        Raises:
            OutputExistsError: if the folder is not empty.
        """
        presets.save(self, directory, overwrite=overwrite)

    @property
    def tokenizer(self):
        """The `T5Tokenizer` of both sides."""
        return self.query_preprocessor.tokenizer

    @property
    def dim(self):
        """Width of the embeddings, an int."""
        return self.query_tower.dim

    def fingerprint(self):
        """Returns 64 hex digits that identify weights, config and vocabulary.

        Two models with equal fingerprints give equal embeddings; an index
        remembers the fingerprint of the model that filled it.
        """
        return presets.fingerprint(self)

    def call(self, inputs, training=None):
        queries = self.query_tower(inputs["queries"], training=training)
        documents = self.document_tower(inputs["documents"], training=training)
        return queries, documents

    # === Training ===

    def compile(
        self,
        optimizer="adam",
        loss=None,
        metrics=None,
        diagnostics=False,
        **kwargs,
    ):
        """Chooses optimizer, loss and what is logged.

        Args:
            optimizer: `keras.optimizers.Optimizer` or its name.
            loss: `ContrastiveLoss`, e.g. `SamToNeLoss()`.
            metrics: list of Keras metrics on `(labels, scores)`, float32
                `[batch, batch]` each: the identity matrix, and the similarity
                of every query with every document of the batch; see
                `tf_samtone.evaluation.in_batch_metrics`. Defaults to none.
            diagnostics: bool. Logs the figures of
                `tf_samtone.losses.contrastive_diagnostics`, at the price of
                computing the similarities of the batch once more. Defaults to
                `False`.
            **kwargs: see `keras.Model.compile`.

        Raises:
            InvalidInputError: if the loss is not a contrastive loss, or a
                metric is not a Keras metric.
        """
        if not isinstance(loss, ContrastiveLoss):
            raise InvalidInputError(
                "Expected `loss` to be a tf_samtone.losses.ContrastiveLoss, "
                f"e.g. SamToNeLoss(). Received: loss={loss!r}. Wrap other "
                "losses in a subclass of it."
            )
        metrics = [] if metrics is None else list(metrics)
        for metric in metrics:
            if not isinstance(metric, keras.metrics.Metric):
                raise InvalidInputError(
                    "Expected `metrics` to be a list of keras.metrics.Metric. "
                    f"Received: {metric!r} in it. Metrics of dual encoders "
                    "have no names; pass objects."
                )
        super().compile(optimizer=optimizer, **kwargs)
        self.contrastive_loss = loss
        # In place: Keras would go on tracking the metrics of a list that is
        # replaced, and report them for ever.
        self.in_batch_metrics.clear()
        self.in_batch_metrics.extend(metrics)
        self.diagnostics.clear()
        if diagnostics:
            self.diagnostics.extend(
                LogMean(name=name)
                if name == "uniformity"
                else keras.metrics.Mean(name=name)
                for name in DIAGNOSTICS
            )

    def get_compile_config(self):
        """Returns `None`: a preset does not hold the optimizer."""
        return None

    def fit(self, x=None, *, validation_data=None, **kwargs):
        # The dataset is shuffled by its maker; Keras warns if told to do it.
        kwargs.setdefault("shuffle", False)
        if validation_data is not None:
            validation_data = as_feature_dataset(self, validation_data)
        return super().fit(
            as_feature_dataset(self, x),
            validation_data=validation_data,
            **kwargs,
        )

    def evaluate(self, x=None, **kwargs):
        # Within fit Keras evaluates what fit has converted already.
        if not kwargs.get("_use_cached_eval_dataset"):
            x = as_feature_dataset(self, x)
        return super().evaluate(x, **kwargs)

    @property
    def trainable_variables(self):
        """What `fit` changes: the towers, and the loss's own variables."""
        variables = super().trainable_variables
        if self.contrastive_loss is None:
            return variables
        return [*variables, *self.contrastive_loss.trainable_variables]

    def train_step(self, data):
        features = checked_features(data)
        with tf.GradientTape() as tape:
            batch = EmbeddedBatch.from_features(self, features, training=True)
            total = self._total_loss(batch)
            # Divided by the rows of all replicas, whose gradients the
            # optimizer adds up: the mean over the global batch.
            loss = total / tf.maximum(batch.num_columns, 1.0)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in variables])
        self.optimizer.apply(gradients, variables)
        return self._update_metrics(total, batch)

    def test_step(self, data):
        features = checked_features(data)
        batch = EmbeddedBatch.from_features(self, features, training=False)
        return self._update_metrics(self._total_loss(batch), batch)

    def _total_loss(self, batch):
        """Returns the sum of the losses of this replica's valid rows."""
        per_example = self.contrastive_loss.per_example(
            batch.queries, batch.documents, **batch.loss_arguments
        )
        return tf.reduce_sum(per_example)

    def _update_metrics(self, total, batch):
        # As mean and weight, so that adding up over replicas and steps gives
        # the mean over rows.
        self._loss_tracker.update_state(
            tf.math.divide_no_nan(total, batch.num_rows),
            sample_weight=batch.num_rows,
        )
        is_valid = batch.loss_arguments["is_valid"]
        if self.in_batch_metrics:
            labels, scores = batch.labels_and_scores()
            if is_valid is not None:
                labels = tf.boolean_mask(labels, is_valid)
                scores = tf.boolean_mask(scores, is_valid)
            for metric in self.in_batch_metrics:
                metric.update_state(labels, scores)
        if self.diagnostics:
            rows = contrastive_diagnostics(
                self.contrastive_loss,
                batch.queries,
                batch.documents,
                **batch.loss_arguments,
            )
            for metric in self.diagnostics:
                metric.update_state(rows[metric.name], sample_weight=is_valid)
        return self.get_metrics_result()

    # === Inference ===

    def encode_queries(self, queries, *, show_progress=False):
        """Encodes queries.

        Args:
            queries: list of strings, or a `tf.data.Dataset` of strings, scalar
                or `[batch]`.
            show_progress: bool. Defaults to `False`.

        Returns:
            float32 `[n, dim]`, unit vectors.
        """
        return self._encode("query", queries, show_progress)

    def encode_documents(self, documents, *, show_progress=False):
        """Encodes documents; see `encode_queries`."""
        return self._encode("document", documents, show_progress)

    def similarity(self, query_embeddings, document_embeddings):
        """Returns float32 `[num_queries, num_documents]`, the cosines.

        Args:
            query_embeddings: float32 `[num_queries, dim]`, unit vectors.
            document_embeddings: float32 `[num_documents, dim]`.
        """
        return np.matmul(
            np.asarray(query_embeddings), np.asarray(document_embeddings).T
        )

    def _encode(self, side, texts, show_progress):
        if isinstance(texts, tf.data.Dataset):
            texts = texts_of_dataset(texts)
        preprocessor = getattr(self, f"{side}_preprocessor")
        return encode_texts(
            self._encode_function(side),
            preprocessor,
            texts,
            dim=self.dim,
            show_progress=show_progress,
            description=f"encode {side} texts",
        )

    def _encode_function(self, side):
        """Returns the traced tower; one trace serves every shape."""
        if side not in self._encode_functions:
            tower = getattr(self, f"{side}_tower")
            spec = tf.TensorSpec([None, None], tf.int32)
            self._encode_functions[side] = tf.function(
                lambda features: tower(features, training=False),
                input_signature=[{"token_ids": spec, "padding_mask": spec}],
                autograph=False,
            )
        return self._encode_functions[side]
