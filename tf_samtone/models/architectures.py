"""How the two towers of a dual encoder share their weights."""

import keras

from tf_samtone.models.architecture_checks import (
    ARCHITECTURES,
    check_architecture,
    check_projection_dim,
    check_vocabulary,
)
from tf_samtone.models.tower import Tower, projection_layer

__all__ = [
    "ARCHITECTURES",
    "build_towers",
    "check_architecture",
    "check_projection_dim",
    "check_vocabulary",
]


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
