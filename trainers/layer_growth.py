"""Dual encoders with more or fewer layers and the same other weights."""

import numpy as np

from tf_samtone.models import DualEncoder, T5Encoder, Tower

__all__ = ["with_num_layers"]


def with_num_layers(
    model: DualEncoder, num_layers: int, *, residual_init_scale: float = 0.0
) -> DualEncoder:
    """Returns a dual encoder of another depth.

    Layers that both depths have keep their weights, as do embeddings, norms
    and projections. At `residual_init_scale=0` added layers change nothing at
    first: the embeddings of the result equal those of `model`.

    The first layers that are added meet token embeddings of root mean square
    1, as T5 starts with: without layers their size has no effect, and small
    ones would be drowned by the first steps of the new layers.

    Args:
        model: `DualEncoder`; not changed.
        num_layers: int >= 0. At 0 a text is the mean of its normalised token
            embeddings.
        residual_init_scale: float. Scales the output projections of added
            layers. Defaults to `0.0`.

    Returns:
        `DualEncoder`, `model` itself if it has that depth.

    Reference:
        Gong et al., 2019, Efficient Training of BERT by Progressively
        Stacking, https://proceedings.mlr.press/v97/gong19a.html
    """
    old = model.query_tower.encoder
    if old.num_layers == num_layers:
        return model
    encoder = T5Encoder.from_config(
        {**old.get_config(), "num_layers": num_layers}
    )
    for layer in encoder.encoder_transformer_layers[old.num_layers :]:
        for dense in (
            layer.self_attention.output_projector,
            layer.output_projector,
        ):
            dense.kernel.assign(dense.kernel * residual_init_scale)
    grown = DualEncoder.from_encoder(
        encoder,
        model.tokenizer,
        architecture=model.architecture,
        projection_dim=model.dim if model.query_tower.projection else 0,
        query_length=model.query_preprocessor.sequence_length,
        document_length=model.document_preprocessor.sequence_length,
    )
    for side in ("query_tower", "document_tower"):
        _copy(getattr(model, side), getattr(grown, side))
    return grown


def _copy(source: Tower, target: Tower) -> None:
    values = {weight.path: weight for weight in source.encoder.weights}
    for weight in target.encoder.weights:
        if weight.path in values:
            weight.assign(values[weight.path])
    if source.encoder.num_layers == 0:
        embeddings = target.encoder.token_embedding.embeddings
        size = float(np.sqrt(np.mean(np.square(embeddings))))
        embeddings.assign(embeddings / size)
    if target.projection is not None:
        target.projection.set_weights(source.projection.get_weights())
    # Without layers nothing reads the bias; it would have no gradient.
    encoder = target.encoder
    encoder.position_bias.trainable = encoder.num_layers > 0
