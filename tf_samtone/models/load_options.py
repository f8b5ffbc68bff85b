"""What a user may choose when a model is loaded."""

from dataclasses import dataclass
from typing import Any

from tf_samtone.errors import MismatchError
from tf_samtone.models.architecture_checks import (
    check_architecture,
    check_projection_dim,
)

_DEFAULTS: dict[str, Any] = {
    "architecture": "sde",
    "projection_dim": 768,
    "query_length": 64,
    "document_length": 256,
    "query_prefix": "",
    "document_prefix": "",
    "normalize": True,
}


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """Options of `DualEncoder.from_preset`, for checkpoints of every format.

    `None` stands for what the checkpoint says, and if it says nothing for the
    default.

    Attributes:
        architecture: str or `None`. See `build_towers`. Defaults to `"sde"`.
        projection_dim: int or `None`. Width of the embeddings; 0 for that of
            the encoder. Defaults to `768`.
        query_length: int or `None`. Tokens of a query. Defaults to `64`.
        document_length: int or `None`. Tokens of a document. Defaults to
            `256`.
        query_prefix: str or `None`. Put before every query. Defaults to `""`.
        document_prefix: str or `None`. Put before every document. Defaults to
            `""`.
        normalize: bool or `None`. Scales embeddings to unit length. Defaults
            to `True`.
        dropout: float or `None`. Of the encoder.
        dtype: str, dtype policy or `None`. Of the encoder. Defaults to the
            global policy.

    Raises:
        InvalidInputError: if the architecture is unknown or the width is not
            an int >= 0.
    """

    architecture: str | None = None
    projection_dim: int | None = None
    query_length: int | None = None
    document_length: int | None = None
    query_prefix: str | None = None
    document_prefix: str | None = None
    normalize: bool | None = None
    dropout: float | None = None
    dtype: Any = None

    def __post_init__(self) -> None:
        # At once, so that a typing error costs no loading of weights.
        if self.architecture is not None:
            check_architecture(self.architecture)
        if self.projection_dim is not None:
            check_projection_dim(self.projection_dim)

    def resolved(self, **stored: Any) -> dict[str, Any]:
        """Returns a value for every option but `dropout` and `dtype`.

        Args:
            **stored: what the checkpoint says; `None` for nothing.

        Returns:
            dict for `DualEncoder.from_encoder`.
        """
        chosen = {}
        for name, default in _DEFAULTS.items():
            values = (getattr(self, name), stored.get(name), default)
            chosen[name] = next(v for v in values if v is not None)
        return chosen

    def refuse_others(self, source: object, **fixed: Any) -> None:
        """Refuses a value that contradicts the checkpoint's weights.

        Args:
            source: what is loaded, for the message.
            **fixed: options that the weights fix.

        Raises:
            MismatchError: names the option.
        """
        for name, value in fixed.items():
            requested = getattr(self, name)
            if requested is not None and requested != value:
                raise MismatchError(
                    f"Expected {name}={value!r}, which {source} was saved "
                    f"with. Received: {name}={requested!r}. Leave the argument "
                    "out, or start from T5 weights instead."
                )
