"""The numbers that decide how large a T5 encoder is."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Of the relative positions, in every published T5.
NUM_BUCKETS = 32
MAX_DISTANCE = 128


@dataclass(frozen=True, kw_only=True)
class EncoderSize:
    """Sizes of a T5 encoder, known without making one.

    Attributes:
        vocabulary_size: int. Rows of the embedding table.
        num_layers: int.
        num_heads: int.
        hidden_dim: int.
        intermediate_dim: int.
        key_value_dim: int. Width of one head.
        activation: str. `"gelu"` or `"relu"`.
        use_gated_activation: bool.
    """

    num_layers: int
    num_heads: int
    hidden_dim: int
    intermediate_dim: int
    vocabulary_size: int = 32128
    key_value_dim: int = 64
    activation: str = "gelu"
    use_gated_activation: bool = True

    @classmethod
    def of_encoder(cls, encoder: Any) -> "EncoderSize":
        """Returns the sizes of a `T5Encoder`."""
        names = cls.__dataclass_fields__
        return cls(**{name: getattr(encoder, name) for name in names})

    @classmethod
    def of_arguments(cls, arguments: Mapping[str, Any]) -> "EncoderSize":
        """Returns the sizes among the arguments of a `T5Encoder`."""
        return cls(
            **{name: arguments[name] for name in cls.__dataclass_fields__}
        )

    @property
    def inner_dim(self) -> int:
        """Width of all heads together."""
        return self.num_heads * self.key_value_dim

    def shapes(self) -> list[tuple[int, ...]]:
        """Returns the shapes of all weights, an entry per variable."""
        hidden, inner = self.hidden_dim, self.inner_dim
        wide = self.intermediate_dim
        layer: list[tuple[int, ...]] = [
            *[(hidden, inner)] * 3,
            (inner, hidden),
            *[(hidden, wide)] * (2 if self.use_gated_activation else 1),
            (wide, hidden),
            (hidden,),
            (hidden,),
        ]
        return [
            (self.vocabulary_size, hidden),
            (NUM_BUCKETS, self.num_heads),
            *layer * self.num_layers,
            (hidden,),
        ]

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(math.prod(shape) for shape in self.shapes())
