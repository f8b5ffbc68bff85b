"""How the two towers of a dual encoder share their weights."""

import keras

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.tower import Tower, projection_layer

__all__ = [
    "ARCHITECTURES",
    "build_towers",
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
    if architecture not in ARCHITECTURES:
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


def build_towers(
    encoder,
    architecture="sde",
    projection_dim=768,
    *,
    projection=None,
    normalize=True,
):
    """Builds the query and the document tower around one encoder.

    Two towers start from the same weights (Dong et al., 2022).

    Args:
        encoder: `T5Encoder`. Becomes the query tower's encoder.
        architecture: str. `"sde"`, `"ade"`, `"ade-spl"`, `"ade-ste"` or
            `"ade-fte"`. Defaults to `"sde"`.
        projection_dim: int. Width of the embeddings; 0 for no projection, so
            that they have the encoder's width. Defaults to `768`.
        projection: `keras.layers.Dense` with weights, in place of a new one of
            `projection_dim`. Defaults to `None`.
        normalize: bool. See `Tower`. Defaults to `True`.

    Returns:
        `(query_tower, document_tower)`; the same object twice for `"sde"`.

    Raises:
        InvalidInputError: if the architecture is unknown or the width is
            negative.

    Reference:
        Dong et al., 2022, Exploring Dual Encoder Architectures for Question
        Answering, https://arxiv.org/abs/2204.07120
    """
    check_architecture(architecture)
    check_projection_dim(projection_dim)
    if projection is None and projection_dim:
        projection = projection_layer(projection_dim)
    if architecture == "sde":
        tower = Tower(encoder, projection, normalize, name="tower")
        return tower, tower
    if architecture == "ade-fte":
        encoder.token_embedding.trainable = False
    twin = _twin(encoder, architecture in ("ade-ste", "ade-fte"))
    query_tower = Tower(encoder, projection, normalize, name="query_tower")
    document_projection = projection
    if projection is not None and architecture != "ade-spl":
        document_projection = _copied(projection, encoder.hidden_dim)
    document_tower = Tower(
        twin, document_projection, normalize, name="document_tower"
    )
    return query_tower, document_tower


def _copied(projection, width):
    """Builds a layer like another one, with its weights."""
    copy = keras.layers.Dense.from_config(
        {**projection.get_config(), "name": "document_projection"}
    )
    copy.build((None, width))
    copy.set_weights(projection.get_weights())
    return copy


def _twin(encoder, share_embedding):
    """Builds a second encoder with the weights of the first."""
    config = {**encoder.get_config(), "name": f"{encoder.name}_document"}
    embedding = encoder.token_embedding if share_embedding else None
    config["token_embedding"] = embedding
    twin = type(encoder).from_config(config)
    # One by one: a list of all values would be a third copy of the encoder.
    for target, source in zip(twin.weights, encoder.weights, strict=True):
        target.assign(source)
    return twin
