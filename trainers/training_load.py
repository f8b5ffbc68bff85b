"""What a training step has to hold in memory, besides the encoder's size."""

from dataclasses import dataclass

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.architectures import check_architecture


@dataclass(frozen=True, kw_only=True)
class TrainingLoad:
    """The choices that decide how much memory a training step takes.

    Attributes:
        batch_size: int. Pairs of a step over all devices.
        devices: int. Devices that share the batch; each has all weights.
        query_length: int. Places per row of query tokens, with padding.
        document_length: int. Places per row of document tokens.
        query_rows: float. Rows per query; below 1 where several are packed
            into one row.
        document_rows: float. Rows per document.
        hard_negatives: int. Documents per pair besides its own.
        projection_dim: int. Width of the embeddings.
        architecture: str. See `tf_samtone.models.build_towers`.
        dtype: str. `"float32"` or `"mixed_bfloat16"`.
        dropout: bool. Whether dropout is above 0.
        optimizer: str. `"adafactor"` (factored) or `"adamw"`.
        clips: bool. Whether gradients are clipped, which copies them.
        rematerialize: bool. Keeps only the inputs of the layers.
        gradient_cache_batch_size: int. Pairs embedded at once; 0 for all.

    Raises:
        InvalidInputError: if a value is out of range, the devices do not
            divide the batch, or the micro-batch a device's share of it.
    """

    batch_size: int
    devices: int = 1
    query_length: int = 64
    document_length: int = 256
    query_rows: float = 1.0
    document_rows: float = 1.0
    hard_negatives: int = 0
    projection_dim: int = 768
    architecture: str = "sde"
    dtype: str = "float32"
    dropout: bool = False
    optimizer: str = "adafactor"
    clips: bool = False
    rematerialize: bool = False
    gradient_cache_batch_size: int = 0

    def __post_init__(self) -> None:
        check_architecture(self.architecture)
        _check_choice("dtype", self.dtype, ("float32", "mixed_bfloat16"))
        _check_choice("optimizer", self.optimizer, ("adafactor", "adamw"))
        for name in (
            "batch_size",
            "devices",
            "query_length",
            "document_length",
            "projection_dim",
        ):
            _check_least(name, getattr(self, name), 1)
        for name in ("hard_negatives", "gradient_cache_batch_size"):
            _check_least(name, getattr(self, name), 0)
        if self.batch_size % self.devices:
            raise InvalidInputError(
                "Expected a batch that the devices divide. Received: "
                f"batch_size={self.batch_size}, devices={self.devices}. "
                "Choose a multiple."
            )
        micro = self.gradient_cache_batch_size
        if micro and self.local_batch % micro:
            raise InvalidInputError(
                "Expected a micro-batch that divides the batch of a device. "
                f"Received: gradient_cache_batch_size={micro}, "
                f"{self.local_batch} pairs per device. Choose a divisor."
            )

    @property
    def local_batch(self) -> int:
        """Pairs of one device."""
        return self.batch_size // self.devices

    @property
    def encoded_pairs(self) -> int:
        """Pairs whose activations one device holds at once."""
        return self.gradient_cache_batch_size or self.local_batch

    @property
    def bytes_per_value(self) -> int:
        """Bytes of a value of the compute dtype."""
        return 4 if self.dtype == "float32" else 2


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InvalidInputError(
            f"Expected `{name}` to be one of {choices}. Received: "
            f"{name}={value!r}. Choose one of these."
        )


def _check_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise InvalidInputError(
            f"Expected `{name}` to be at least {least}. Received: "
            f"{name}={value}. Pass a whole number."
        )
