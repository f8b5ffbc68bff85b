"""The published sizes of T5 and GTR, by name."""

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.model_size import ModelSize
from tf_samtone.models.paper_defaults import GTR, SAMTONE

__all__ = ["MODEL_SIZES", "find_model_size"]


def _t5(
    hidden_dim: int, heads: int, layers: int, wide: int, head: int = 64
) -> EncoderSize:
    """Returns a T5 1.0 encoder."""
    return EncoderSize(
        num_layers=layers,
        num_heads=heads,
        hidden_dim=hidden_dim,
        intermediate_dim=wide,
        key_value_dim=head,
        activation="relu",
        use_gated_activation=False,
    )


def _t5_1_1(hidden_dim: int, heads: int, layers: int, wide: int) -> EncoderSize:
    """Returns a T5 1.1 encoder; Flan-T5 has the same sizes."""
    return EncoderSize(
        num_layers=layers,
        num_heads=heads,
        hidden_dim=hidden_dim,
        intermediate_dim=wide,
    )


_T5 = {
    "small": _t5(512, 8, 6, 2048),
    "base": _t5(768, 12, 12, 3072),
    "large": _t5(1024, 16, 24, 4096),
    "xl": _t5(1024, 32, 24, 16384, head=128),
    "xxl": _t5(1024, 128, 24, 65536, head=128),
}
_T5_1_1 = {
    "small": _t5_1_1(512, 6, 8, 1024),
    "base": _t5_1_1(768, 12, 12, 2048),
    "large": _t5_1_1(1024, 16, 24, 2816),
    "xl": _t5_1_1(2048, 32, 24, 5120),
    "xxl": _t5_1_1(4096, 64, 24, 10240),
}
# Raffel et al., 2020, call the two largest by their number of parameters.
_ALIASES = {"t5_3b": "t5_xl", "t5_11b": "t5_xxl"}

MODEL_SIZES = {
    **{f"t5_{k}": ModelSize(encoder=v) for k, v in _T5.items()},
    **{
        f"t5_1.1_{k}": ModelSize(encoder=v, paper=SAMTONE)
        for k, v in _T5_1_1.items()
    },
    # GTR's encoders are those of T5 1.0, and there is no small one.
    **{
        f"gtr_{k}": ModelSize(encoder=v, paper=GTR)
        for k, v in _T5.items()
        if k != "small"
    },
}


def find_model_size(name: str) -> ModelSize:
    """Returns a published size.

    Args:
        name: str. `"t5_small"` to `"t5_xxl"` (T5 1.0; also `"t5_3b"`,
            `"t5_11b"`), `"t5_1.1_small"` to `"t5_1.1_xxl"`, `"gtr_base"` to
            `"gtr_xxl"`. Flan-T5 has the sizes of T5 1.1, Sentence-T5 those of
            GTR.

    Raises:
        InvalidInputError: if there is no such size; lists the names.

    Reference:
        Raffel et al., 2020, https://arxiv.org/abs/1910.10683; Ni et al., 2021,
        https://arxiv.org/abs/2112.07899
    """
    known = _ALIASES.get(name, name)
    if known not in MODEL_SIZES:
        names = [*MODEL_SIZES, *_ALIASES]
        raise InvalidInputError(
            f"Expected a size of {names}. Received: {name!r}. Choose one of "
            "these."
        )
    return MODEL_SIZES[known]
