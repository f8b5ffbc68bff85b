"""How the two towers of a dual encoder share their weights."""

from tf_samtone.errors import InvalidInputError
from tf_samtone.models.tower import Tower, projection_layer

__all__ = [
    "ARCHITECTURES",
    "build_towers",
    "check_architecture",
    "check_projection_dim",
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
    """Raises `InvalidInputError` unless the width is an int above 0."""
    if (
        not isinstance(projection_dim, int)
        or isinstance(projection_dim, bool)
        or projection_dim < 1
    ):
        raise InvalidInputError(
            "Expected `projection_dim` > 0, an int. Received: "
            f"projection_dim={projection_dim!r}. The papers use 768."
        )


def build_towers(encoder, architecture="sde", projection_dim=768):
    """Builds the query and the document tower around one encoder.

    Two towers start from the same weights (Dong et al., 2022).

    Args:
        encoder: `T5Encoder`. Becomes the query tower's encoder.
        architecture: str. `"sde"`, `"ade"`, `"ade-spl"`, `"ade-ste"` or
            `"ade-fte"`. Defaults to `"sde"`.
        projection_dim: int. Width of the embeddings. Defaults to `768`.

    Returns:
        `(query_tower, document_tower)`; the same object twice for `"sde"`.

    Raises:
        InvalidInputError: if the architecture is unknown or the width is not
            positive.

    Reference:
        Dong et al., 2022, Exploring Dual Encoder Architectures for Question
        Answering, https://arxiv.org/abs/2204.07120
    """
    check_architecture(architecture)
    check_projection_dim(projection_dim)
    projection = projection_layer(projection_dim)
    if architecture == "sde":
        tower = Tower(encoder, projection, name="tower")
        return tower, tower
    if architecture == "ade-fte":
        encoder.token_embedding.trainable = False
    twin = _twin(encoder, architecture in ("ade-ste", "ade-fte"))
    query_tower = Tower(encoder, projection, name="query_tower")
    if architecture == "ade-spl":
        document_projection = projection
    else:
        document_projection = projection_layer(
            projection_dim, name="document_projection"
        )
        document_projection.build((None, encoder.hidden_dim))
        document_projection.set_weights(projection.get_weights())
    document_tower = Tower(twin, document_projection, name="document_tower")
    return query_tower, document_tower


def _twin(encoder, share_embedding):
    """Builds a second encoder with the weights of the first."""
    config = {**encoder.get_config(), "name": f"{encoder.name}_document"}
    embedding = encoder.token_embedding if share_embedding else None
    config["token_embedding"] = embedding
    twin = type(encoder).from_config(config)
    twin.set_weights(encoder.get_weights())
    return twin
