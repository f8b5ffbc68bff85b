"""What a dual encoder can be, known without TensorFlow."""

from tf_samtone.errors import InvalidInputError

__all__ = [
    "ARCHITECTURES",
    "check_architecture",
    "check_projection_dim",
    "check_vocabulary",
]

ARCHITECTURES = {
    "sde": "one tower for both sides",
    "ade": "two towers, nothing shared",
    "ade-spl": "two towers, shared projection layer",
    "ade-ste": "two towers, shared token embedder",
    "ade-fte": "two towers, shared and frozen token embedder",
}


def check_architecture(architecture):
    """Raises `InvalidInputError` for an unknown architecture."""
    # A list, since what a file says need not be hashable.
    if architecture not in list(ARCHITECTURES):
        choices = ", ".join(f"{k!r} ({v})" for k, v in ARCHITECTURES.items())
        raise InvalidInputError(
            f"Expected `architecture` to be one of {choices}. Received: "
            f"architecture={architecture!r}. Check the spelling."
        )


def check_projection_dim(projection_dim):
    """Raises `InvalidInputError` unless the width is an int, 0 or more."""
    if (
        not isinstance(projection_dim, int)
        or isinstance(projection_dim, bool)
        or projection_dim < 0
    ):
        raise InvalidInputError(
            "Expected `projection_dim`, an int >= 0. Received: "
            f"projection_dim={projection_dim!r}. The papers use 768; 0 leaves "
            "the projection out."
        )


def check_vocabulary(tokenizer, encoder):
    """Raises `InvalidInputError` if a piece has no embedding row."""
    pieces = tokenizer.vocabulary_size()
    if pieces > encoder.vocabulary_size:
        raise InvalidInputError(
            "Expected an embedding row for each of the tokenizer's pieces. "
            f"Received: {pieces} pieces, "
            f"vocabulary_size={encoder.vocabulary_size}. Use the tokenizer "
            "that belongs to the weights."
        )
