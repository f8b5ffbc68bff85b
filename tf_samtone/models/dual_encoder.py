"""Query tower and document tower, trained together."""

from typing import Any

import keras
import tensorflow as tf

from tf_samtone.distribution import (
    check_optimizer,
    guarded_update,
    reducible_logs,
)
from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import ContrastiveLoss
from tf_samtone.losses.diagnostics import DIAGNOSTICS
from tf_samtone.models import presets
from tf_samtone.models.architectures import build_towers, check_vocabulary
from tf_samtone.models.bad_step_guard import BadStepGuard
from tf_samtone.models.batch_gradients import BatchGradients
from tf_samtone.models.dropout_seed import folded_seed
from tf_samtone.models.embedded_batch import EmbeddedBatch
from tf_samtone.models.encodes_texts import EncodesTexts
from tf_samtone.models.load_options import LoadOptions
from tf_samtone.models.log_mean import LogMean
from tf_samtone.models.pair_encoding import encode_pairs
from tf_samtone.models.pair_features import as_feature_dataset, checked_features
from tf_samtone.models.step_metrics import update_metrics
from tf_samtone.models.training_state import TrainingState
from tf_samtone.text import TextPreprocessor


class DualEncoder(EncodesTexts, keras.Model):
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
        self.gradient_cache_batch_size = None
        self.training_state: Any = None
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
        query_prefix="",
        document_prefix="",
        projection=None,
        normalize=True,
        **kwargs,
    ):
        """Builds a dual encoder around an encoder and its tokenizer.

        Args:
            encoder: `T5Encoder`.
            tokenizer: `keras_hub.models.T5Tokenizer`.
            architecture: str. `"sde"`, `"ade"`, `"ade-spl"`, `"ade-ste"` or
                `"ade-fte"`. Defaults to `"sde"`.
            projection_dim: int. Width of the embeddings; 0 for that of the
                encoder. Defaults to `768`.
            query_length: int. Tokens of a query, with `</s>`. Defaults to `64`.
            document_length: int. Tokens of a document. Defaults to `256`.
            query_prefix: str. Put before every query. Defaults to `""`.
            document_prefix: str. Put before every document. Defaults to `""`.
            projection: `keras.layers.Dense` with weights, in place of a new
                one of `projection_dim`. Defaults to `None`.
            normalize: bool. Scales embeddings to unit length. Defaults to
                `True`.
            **kwargs: see `keras.Model`.

        Raises:
            InvalidInputError: if an option is out of range, or the tokenizer
                has more pieces than the encoder has embedding rows.
        """
        # Before the copy that two towers need.
        check_vocabulary(tokenizer, encoder)
        query_tower, document_tower = build_towers(
            encoder,
            architecture,
            projection_dim,
            projection=projection,
            normalize=normalize,
        )
        return cls.from_towers(
            query_tower,
            document_tower,
            tokenizer,
            architecture=architecture,
            query_length=query_length,
            document_length=document_length,
            query_prefix=query_prefix,
            document_prefix=document_prefix,
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
        *,
        query_prefix=None,
        document_prefix=None,
        normalize=None,
        pickled_files=(),
    ):
        """Loads a saved dual encoder, or starts one from other weights.

        Args:
            preset: str. A folder written by `save_to_preset`; of
                sentence-transformers (`gtr-t5-*`, `sentence-t5-*`); of Hugging
                Face (`config.json`, `model.safetensors`, `spiece.model`); a
                t5x checkpoint with `spiece.model` beside it; or a KerasHub T5
                preset, by name or folder.
            architecture: str or `None`. For weights of one tower, defaults to
                `"sde"`. A model with two has its own; another one is an error.
            projection_dim: int or `None`. For T5 weights, defaults to `768`; 0
                leaves the projection out. Weights with a projection fix it.
            query_length: int or `None`. Defaults to the saved value, or `64`.
            document_length: int or `None`. Defaults to the saved value, or
                `256`.
            dropout: float or `None`. Defaults to the saved value.
            dtype: str or dtype policy. Defaults to the global policy.
            query_prefix: str or `None`. Put before every query. Defaults to
                the saved value, or `""`.
            document_prefix: str or `None`. Likewise for documents.
            normalize: bool or `None`. Scales embeddings to unit length.
                Defaults to the saved value, or `True`.
            pickled_files: names of pickled weight files, relative to the
                folder, that may be read where there is nothing else, e.g.
                `("pytorch_model.bin",)`. Needs torch, which reads tensors only
                (`weights_only`). Defaults to none: a pickle can run code.

        Raises:
            InvalidInputError: if the preset is unknown or an argument
                contradicts it.
            CorruptFileError: if a file fails its checksum or is malformed.
        """
        return presets.load(
            cls,
            preset,
            LoadOptions(
                architecture=architecture,
                projection_dim=projection_dim,
                query_length=query_length,
                document_length=document_length,
                query_prefix=query_prefix,
                document_prefix=document_prefix,
                normalize=normalize,
                dropout=dropout,
                dtype=dtype,
            ),
            pickled_files=tuple(pickled_files),
        )

    @classmethod
    def from_towers(
        cls,
        query_tower,
        document_tower,
        tokenizer,
        *,
        architecture,
        query_length=64,
        document_length=256,
        query_prefix="",
        document_prefix="",
        **kwargs,
    ):
        """Puts two towers and their tokenizer together.

        Args:
            query_tower: `Tower`.
            document_tower: `Tower`; the same object for `"sde"`.
            tokenizer: `keras_hub.models.T5Tokenizer`.
            architecture: str. What the towers share; see `build_towers`.
            query_length: int. Defaults to `64`.
            document_length: int. Defaults to `256`.
            query_prefix: str. Defaults to `""`.
            document_prefix: str. Defaults to `""`.
            **kwargs: see `keras.Model`.

        Raises:
            InvalidInputError: if an option is out of range, or the tokenizer
                has more pieces than an encoder has embedding rows.
        """
        for tower in (query_tower, document_tower):
            check_vocabulary(tokenizer, tower.encoder)
        return cls(
            query_tower,
            document_tower,
            TextPreprocessor(tokenizer, query_length, query_prefix),
            TextPreprocessor(tokenizer, document_length, document_prefix),
            architecture=architecture,
            **kwargs,
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
        *,
        gradient_cache_batch_size=None,
        max_bad_steps=10,
        seed=0,
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
            gradient_cache_batch_size: int or `None`. Pairs per micro-batch and
                replica. A batch of any size then needs the memory of one
                micro-batch and has all its negatives, at the price of a
                second forward pass; see `GradientCache`. Must divide the rows
                of a replica. Defaults to `None`, which encodes all at once.
            max_bad_steps: int. A step whose loss or gradients are not finite
                changes nothing; so many in a row end `fit`. Defaults to `10`.
            seed: int. Decides dropout, with the number of the step. Defaults
                to `0`.
            **kwargs: see `keras.Model.compile`.

        Raises:
            InvalidInputError: if the loss is not a contrastive loss, a metric
                is not a Keras metric, a number is out of range, the embeddings
                have no unit length, or the optimizer has an option that is
                wrong on several replicas.
        """
        if not self.query_tower.normalize:
            raise InvalidInputError(
                "Expected a model of unit vectors, which the temperature of "
                "the losses is made for. Received: normalize=False. Load the "
                "model with normalize=True."
            )
        if not isinstance(loss, ContrastiveLoss):
            raise InvalidInputError(
                "Expected `loss` to be a tf_samtone.losses.ContrastiveLoss, "
                f"e.g. SamToNeLoss(). Received: loss={loss!r}. Wrap other "
                "losses in a subclass of it."
            )
        metrics = [] if metrics is None else list(metrics)
        _check_compile_options(
            metrics, gradient_cache_batch_size, max_bad_steps
        )
        super().compile(optimizer=optimizer, **kwargs)
        strategy = self.distribute_strategy
        check_optimizer(
            self.optimizer,
            strategy,
            jit_compile=kwargs.get("jit_compile", "auto"),
        )
        self.contrastive_loss = loss
        self.gradient_cache_batch_size = gradient_cache_batch_size
        self.max_bad_steps = max_bad_steps
        self.training_seed = seed
        with strategy.scope():
            self.training_state = TrainingState()
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
        if not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)
        callbacks = kwargs.pop("callbacks", None)
        if not isinstance(callbacks, keras.callbacks.CallbackList):
            # First: whatever saves the model must not see a failed run.
            callbacks = [BadStepGuard(), *tf.nest.flatten(callbacks or [])]
        return super().fit(
            as_feature_dataset(self, x, self.gradient_cache_batch_size),
            validation_data=validation_data,
            callbacks=callbacks,
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

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Does nothing: all is built already.

        Keras would look at the first batch of every replica, and fails to put
        the features of several replicas together.
        """

    def train_step(self, data):
        features = checked_features(data)
        state = self.training_state
        # The same on every replica but for the last number.
        seed = folded_seed(
            self.training_seed, state.steps.value, _replica_number()
        )
        variables = self.trainable_variables
        step = BatchGradients.computed(
            self,
            features,
            variables,
            seed=seed,
            micro_batch_size=self.gradient_cache_batch_size,
        )
        is_finite, norm = guarded_update(
            self.optimizer,
            step.gradients,
            variables,
            finite_also=[step.total],
        )
        state.update(is_finite, norm)
        update_metrics(self, step.total, step.batch, is_finite)
        return reducible_logs(self.get_metrics_result())

    def test_step(self, data):
        features = checked_features(data)
        embeddings = encode_pairs(self, features, training=False)
        batch = EmbeddedBatch.gathered(embeddings, features)
        total = batch.total_loss(self.contrastive_loss)
        update_metrics(self, total, batch)
        return reducible_logs(self.get_metrics_result())


def _check_compile_options(metrics, gradient_cache_batch_size, max_bad_steps):
    for metric in metrics:
        if not isinstance(metric, keras.metrics.Metric):
            raise InvalidInputError(
                "Expected `metrics` to be a list of keras.metrics.Metric. "
                f"Received: {metric!r} in it. Metrics of dual encoders "
                "have no names; pass objects."
            )
    counts = {"max_bad_steps": max_bad_steps}
    if gradient_cache_batch_size is not None:
        counts["gradient_cache_batch_size"] = gradient_cache_batch_size
    for name, value in counts.items():
        if not isinstance(value, int) or value < 1:
            raise InvalidInputError(
                f"Expected `{name}` to be an int of at least 1. Received: "
                f"{name}={value!r}."
            )


def _replica_number():
    context = tf.distribute.get_replica_context()
    return 0 if context is None else context.replica_id_in_sync_group
