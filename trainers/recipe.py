"""Recipes: everything that decides a training run, as frozen dataclasses."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from tf_samtone.models.architectures import check_architecture
from tf_samtone.trainers._recipe_checks import at_least, one_of, refuse, share
from tf_samtone.trainers.training_recipe import TrainingRecipe

__all__ = [
    "DataRecipe",
    "EvaluationRecipe",
    "LossRecipe",
    "ModelRecipe",
    "OptimizerRecipe",
    "Recipe",
    "StageRecipe",
    "TrainingRecipe",
]

LOSSES = ("samtone", "in_batch_softmax", "pair", "gte")


@dataclass(frozen=True, kw_only=True)
class DataRecipe:
    """Where the collection comes from.

    Attributes:
        reader: str. `"beir"` (a folder) or `"python_docs"` (mined from the
            Python packages of this machine).
        path: str. Folder of the `"beir"` reader; relative to the working
            directory.
        packages: names of packages for `"python_docs"`; empty for its default.
        how_to_get: str. Shown when the folder is missing.
    """

    reader: str = "beir"
    path: str = ""
    packages: tuple[str, ...] = ()
    how_to_get: str = ""

    def __post_init__(self) -> None:
        one_of("data.reader", self.reader, ("beir", "python_docs"))
        if self.reader == "beir" and not self.path:
            refuse("data.path", self.path, "a folder for reader 'beir'")


@dataclass(frozen=True, kw_only=True)
class ModelRecipe:
    """The dual encoder and where its weights start.

    Attributes:
        preset: str. Folder or name for `DualEncoder.from_preset`; empty to
            start from random weights of the sizes below.
        architecture: str. See `tf_samtone.models.build_towers`.
        projection_dim: int. Width of the embeddings; 0 for that of the
            encoder. A preset with a projection of its own fixes it.
        query_length: int. Tokens of a query.
        document_length: int. Tokens of a document.
        dropout: float in [0, 1).
        dtype: str. `"float32"` or `"mixed_bfloat16"`.
        vocabulary_size: int. Pieces of the vocabulary trained for random
            weights.
        num_layers: int. For random weights, as the next three.
        num_heads: int.
        hidden_dim: int.
        intermediate_dim: int.
        residual_init_scale: float in [0, 1]. Scales the initial output
            projections of every layer of random weights; at 0 the encoder
            starts as a mean of token embeddings.
        embedding_init_scale: float > 0. Scales the initial token embeddings
            of random weights. Hidden states are normalised, so only the size
            of the steps relative to the embeddings changes: they turn faster
            at a smaller scale.
        how_to_get: str. Shown when the preset is missing.
    """

    preset: str = ""
    architecture: str = "sde"
    projection_dim: int = 768
    query_length: int = 64
    document_length: int = 256
    dropout: float = 0.0
    dtype: str = "float32"
    vocabulary_size: int = 0
    num_layers: int = 0
    num_heads: int = 4
    hidden_dim: int = 256
    intermediate_dim: int = 512
    residual_init_scale: float = 1.0
    embedding_init_scale: float = 1.0
    how_to_get: str = ""

    def __post_init__(self) -> None:
        check_architecture(self.architecture)
        if "float16" in self.dtype and "bfloat16" not in self.dtype:
            refuse(
                "model.dtype",
                self.dtype,
                "'float32' or 'mixed_bfloat16': hidden states of T5 reach 1e5, "
                "and float16 ends at 65504",
            )
        one_of("model.dtype", self.dtype, ("float32", "mixed_bfloat16"))
        at_least("model.projection_dim", self.projection_dim, 0)
        at_least("model.query_length", self.query_length, 2)
        at_least("model.document_length", self.document_length, 2)
        share("model.dropout", self.dropout)
        if not self.preset:
            at_least("model.num_layers", self.num_layers, 1)
            at_least("model.vocabulary_size", self.vocabulary_size, 64)
            if not self.embedding_init_scale > 0:
                refuse(
                    "model.embedding_init_scale",
                    self.embedding_init_scale,
                    "a number > 0",
                )


@dataclass(frozen=True, kw_only=True)
class LossRecipe:
    """The contrastive loss.

    Attributes:
        name: str. `"samtone"`, `"in_batch_softmax"`, `"pair"` or `"gte"`.
        temperature: float > 0.
        same_tower: str. `"query"`, `"document"` or `"both"`, for `"samtone"`.
        bidirectional: bool.
        direction_reduction: str. `"sum"` or `"mean"`.
        mask_duplicates: bool.
    """

    name: str = "samtone"
    temperature: float = 0.01
    same_tower: str = "query"
    bidirectional: bool = True
    direction_reduction: str = "sum"
    mask_duplicates: bool = True

    def __post_init__(self) -> None:
        one_of("loss.name", self.name, LOSSES)
        if not self.temperature > 0:
            refuse("loss.temperature", self.temperature, "a number > 0")


@dataclass(frozen=True, kw_only=True)
class OptimizerRecipe:
    """The optimizer; its learning rate belongs to each stage.

    Attributes:
        name: str. `"adafactor"` or `"adamw"`.
        weight_decay: float >= 0. Decoupled; `0` for none.
        global_clipnorm: float. `0` for no clipping.
    """

    name: str = "adafactor"
    weight_decay: float = 0.0
    global_clipnorm: float = 0.0

    def __post_init__(self) -> None:
        one_of("optimizer.name", self.name, ("adafactor", "adamw"))


@dataclass(frozen=True, kw_only=True)
class StageRecipe:
    """One stage of training: pairs, batches, learning rate.

    Attributes:
        name: str. Shown in the progress.
        pairs: str. `"train"` (judged pairs of the train split) or `"weak"`
            (mined from the same sources; `"python_docs"` only).
        steps: int.
        batch_size: int.
        learning_rate: float. Peak; decays linearly to 0 at the last step.
        warmup_steps: int.
        group_size: int. Runs of this many pairs, consecutive in the file,
            stay in one batch; 1 mixes all pairs. Sets whose neighbours are
            related (questions about one subject) get hard in-batch negatives.
        num_layers: int. Layers that the encoder has in this stage, for random
            weights; -1 for all. A stage with fewer is much faster; the next
            one adds the others, which start as `model.residual_init_scale`
            says.
        unique_texts: bool. Keeps two copies of one query or document out of a
            batch.
    """

    name: str = "train"
    pairs: str = "train"
    steps: int
    batch_size: int
    learning_rate: float = 1e-3
    warmup_steps: int = 0
    group_size: int = 1
    num_layers: int = -1
    unique_texts: bool = False

    def __post_init__(self) -> None:
        at_least("stages.num_layers", self.num_layers, -1)
        one_of("stages.pairs", self.pairs, ("train", "weak"))
        at_least("stages.steps", self.steps, 1)
        at_least("stages.warmup_steps", self.warmup_steps, 0)
        at_least("stages.group_size", self.group_size, 1)
        if self.batch_size < 2:
            refuse(
                "stages.batch_size",
                self.batch_size,
                "at least 2, since the other pairs of the batch are the "
                "negatives",
            )
        if not self.learning_rate > 0:
            refuse("stages.learning_rate", self.learning_rate, "a number > 0")


@dataclass(frozen=True, kw_only=True)
class EvaluationRecipe:
    """What is measured after training.

    Attributes:
        metrics: names for `tf_samtone.evaluation.evaluate`.
        splits: splits to evaluate, each over the whole corpus.
        bm25: bool. Measures BM25 beside the model.
        compare_losses: names of losses to train again with the same budget,
            data order and starting weights.
    """

    metrics: tuple[str, ...] = ("P@1", "MRR@10", "R@10", "R@100")
    splits: tuple[str, ...] = ("dev", "test")
    bm25: bool = True
    compare_losses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in self.compare_losses:
            LossRecipe(name=name)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training run.

    Attributes:
        name: str. Names the default output folder.
        data: `DataRecipe`.
        model: `ModelRecipe`.
        stages: `StageRecipe`, one after another.
        loss: `LossRecipe`.
        optimizer: `OptimizerRecipe`.
        training: `TrainingRecipe`.
        evaluation: `EvaluationRecipe`.
        seed: int. Decides initial weights, data order and dropout.
        description: str.
        schema_version: int.
    """

    name: str
    data: DataRecipe
    model: ModelRecipe
    stages: tuple[StageRecipe, ...]
    loss: LossRecipe = field(default_factory=LossRecipe)
    optimizer: OptimizerRecipe = field(default_factory=OptimizerRecipe)
    training: TrainingRecipe = field(default_factory=TrainingRecipe)
    evaluation: EvaluationRecipe = field(default_factory=EvaluationRecipe)
    seed: int = 0
    description: str = ""
    schema_version: int = 1

    def __post_init__(self) -> None:
        if not self.stages:
            refuse("stages", self.stages, "at least one [[stages]] table")
        if self.schema_version != 1:
            refuse("schema_version", self.schema_version, "1")
        for stage in self.stages:
            self._check_layers(stage)
            # The number of other devices shows only on the machine itself.
            if self.training.strategy == "none" or self.training.devices:
                self.training.check_batch(
                    stage.batch_size, max(1, self.training.devices)
                )
        if self.data.reader == "beir":
            weak = [s.name for s in self.stages if s.pairs == "weak"]
            if weak:
                refuse("stages.pairs", "weak", "'train' for reader 'beir'")

    def _check_layers(self, stage: StageRecipe) -> None:
        if self.model.preset and stage.num_layers >= 0:
            refuse("stages.num_layers", stage.num_layers, "-1 with a preset")
        if not self.model.preset and stage.num_layers > self.model.num_layers:
            refuse(
                "stages.num_layers",
                stage.num_layers,
                f"at most model.num_layers={self.model.num_layers}",
            )

    def to_dict(self) -> dict[str, Any]:
        """Returns nested dicts and lists that JSON can hold."""
        return dataclasses.asdict(self)
