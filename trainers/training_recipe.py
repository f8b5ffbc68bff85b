"""How a recipe's training is run: devices, memory, checkpoints, validation."""

from dataclasses import dataclass

from tf_samtone.evaluation._metric_names import parse_metric
from tf_samtone.trainers._recipe_checks import at_least, one_of, refuse

__all__ = ["TrainingRecipe"]

STRATEGIES = ("none", "mirrored", "tpu")


@dataclass(frozen=True, kw_only=True)
class TrainingRecipe:
    """How the steps are run, kept and watched.

    Attributes:
        strategy: str. `"none"`, `"mirrored"` (the GPUs of this machine) or
            `"tpu"`; see `tf_samtone.distribution.make_strategy`. Not
            `"multi_worker"`: a recipe's checkpoints and results are those of
            one process.
        devices: int. For `"mirrored"`: that many logical CPUs, for tests; 0
            takes all GPUs.
        tpu: str. For `"tpu"`: name or address of the TPU, or `"local"`.
        gradient_cache_batch_size: int. Pairs that a device embeds at a time;
            the gradients are those of the whole batch. 0 embeds all at once.
        packing: str. `"rows"` packs several texts into one row of tokens;
            `"none"` pads each text.
        rematerialize: bool. Computes the layers anew in the backward pass
            instead of keeping their activations.
        last_batch: str. What an epoch does with pairs that fill no batch:
            `"drop"` or `"pad"` (masked out of the loss).
        max_bad_steps: int. Steps with non-finite gradients in a row, all
            skipped, that end the run.
        checkpoint_every: int. Steps from one checkpoint to the next; one more
            is written at the end of each stage. 0 writes none, and leaves
            SIGTERM and SIGINT alone.
        keep_checkpoints: int. Newest checkpoints that are kept; with
            validation also the best one.
        validate_every: int. Steps from one validation to the next; 0 for none.
        validation_split: str. Split whose queries validate.
        validation_documents: int. Documents that they are searched in.
        best_metric: str. Metric of the best model and of early stopping.
        early_stopping_patience: int. Validations without a better
            `best_metric` that end a stage; 0 for none.
        tensorboard: bool. Writes scalars for TensorBoard.
    """

    strategy: str = "none"
    devices: int = 0
    tpu: str = "local"
    gradient_cache_batch_size: int = 0
    packing: str = "none"
    rematerialize: bool = False
    last_batch: str = "drop"
    max_bad_steps: int = 10
    checkpoint_every: int = 500
    keep_checkpoints: int = 2
    validate_every: int = 0
    validation_split: str = "dev"
    validation_documents: int = 10_000
    best_metric: str = "MRR@10"
    early_stopping_patience: int = 0
    tensorboard: bool = False

    def __post_init__(self) -> None:
        if self.strategy == "multi_worker":
            refuse(
                "training.strategy",
                self.strategy,
                f"one of {STRATEGIES}: several processes would write the same "
                "checkpoints and results, and a signal would stop one of them "
                "between the collectives of the others. Call model.fit under "
                "tf_samtone.distribution.make_strategy('multi_worker') instead",
            )
        one_of("training.strategy", self.strategy, STRATEGIES)
        one_of("training.packing", self.packing, ("none", "rows"))
        one_of("training.last_batch", self.last_batch, ("drop", "pad"))
        for name, least in (
            ("devices", 0),
            ("gradient_cache_batch_size", 0),
            ("max_bad_steps", 1),
            ("checkpoint_every", 0),
            ("keep_checkpoints", 1),
            ("validate_every", 0),
            ("validation_documents", 1),
            ("early_stopping_patience", 0),
        ):
            at_least(f"training.{name}", getattr(self, name), least)
        if self.devices and self.strategy != "mirrored":
            refuse(
                "training.devices",
                self.devices,
                f"0 with training.strategy={self.strategy!r}: only 'mirrored' "
                "makes logical devices",
            )
        parse_metric(self.best_metric)
        if self.early_stopping_patience and not self.validate_every:
            refuse(
                "training.validate_every",
                self.validate_every,
                "at least 1 with training.early_stopping_patience="
                f"{self.early_stopping_patience}",
            )

    def check_batch(self, batch_size: int, replicas: int) -> None:
        """Refuses a batch that cannot be divided evenly.

        Args:
            batch_size: int. Pairs of a step over all replicas.
            replicas: int. Devices that share it.

        Raises:
            InvalidInputError: if replicas or micro-batches would differ.
        """
        if batch_size % replicas:
            refuse(
                "stages.batch_size",
                batch_size,
                f"a multiple of the {replicas} replicas of "
                f"training.strategy={self.strategy!r}",
            )
        local = batch_size // replicas
        micro = self.gradient_cache_batch_size
        if micro and local % micro:
            refuse(
                "training.gradient_cache_batch_size",
                micro,
                f"a divisor of the {local} pairs of each replica "
                f"(stages.batch_size={batch_size}, {replicas} replicas)",
            )
