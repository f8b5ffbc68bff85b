"""One tower: text features in, a unit vector out."""

import keras

from tf_samtone.models.l2_normalization import L2Normalization
from tf_samtone.models.masked_mean_pooling import MaskedMeanPooling
from tf_samtone.models.segment_mean_pooling import SegmentMeanPooling


@keras.saving.register_keras_serializable(package="tf_samtone")
class Tower(keras.layers.Layer):
    """Encoder, masked mean, projection, unit length.

    The encoder runs in its own dtype; pooling, projection and normalisation
    are float32. Encoder and projection may be shared with another tower.

    Args:
        encoder: `T5Encoder`, or any layer from `{"token_ids", "padding_mask"}`
            to float `[batch, seq, hidden_dim]`; packed rows ask for an
            `encode_packed` besides.
        projection: `keras.layers.Dense`, see `projection_layer`; or `None`
            for embeddings of the encoder's width.
        normalize: bool. Scales the embeddings to unit length, as training
            needs them; some published models leave it to their users. Defaults
            to `True`.
        **kwargs: see `keras.layers.Layer`.

    Call arguments:
        inputs: dict of `token_ids` int32 `[batch, seq]` and `padding_mask`
            int32 `[batch, seq]`; or, packed, of `token_ids` and `segment_ids`
            int32 `[rows, row_length]`, and `lengths` int32 `[batch]`, the
            tokens of each text.

    Returns:
        float32 `[batch, dim]`, unit vectors unless `normalize` is false.

    Reference:
        Ni et al., 2021, Large Dual Encoders Are Generalizable Retrievers,
        https://arxiv.org/abs/2112.07899
    """

    def __init__(self, encoder, projection, normalize=True, **kwargs):
        super().__init__(**kwargs)
        self.encoder = encoder
        self.projection = projection
        self.normalize = normalize
        self.pooling = MaskedMeanPooling(name="pooling")
        self.packed_pooling = SegmentMeanPooling(name="packed_pooling")
        self.normalization = L2Normalization(name="normalization")
        if projection is not None and not projection.built:
            projection.build((None, encoder.hidden_dim))
        self.built = True

    @property
    def dim(self):
        """Width of the embeddings."""
        if self.projection is None:
            return self.encoder.hidden_dim
        return self.projection.units

    def call(self, inputs, training=None):
        if "segment_ids" in inputs:
            return self._call_packed(inputs, training)
        hidden = self.encoder(
            {
                "token_ids": inputs["token_ids"],
                "padding_mask": inputs["padding_mask"],
            },
            training=training,
        )
        pooled = self.pooling(hidden, padding_mask=inputs["padding_mask"])
        return self._embedding(pooled)

    def _call_packed(self, inputs, training):
        hidden = self.encoder.encode_packed(
            {
                "token_ids": inputs["token_ids"],
                "segment_ids": inputs["segment_ids"],
            },
            training=training,
        )
        pooled = self.packed_pooling(
            hidden,
            segment_ids=inputs["segment_ids"],
            lengths=inputs["lengths"],
        )
        return self._embedding(pooled)

    def _embedding(self, pooled):
        if self.projection is not None:
            pooled = self.projection(pooled)
        return self.normalization(pooled) if self.normalize else pooled

    def compute_output_shape(self, input_shape):
        return (input_shape["token_ids"][0], self.dim)

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": keras.saving.serialize_keras_object(self.encoder),
            "projection": keras.saving.serialize_keras_object(self.projection),
            "normalize": self.normalize,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        for name in ("encoder", "projection"):
            config[name] = keras.saving.deserialize_keras_object(config[name])
        return cls(**config)


def projection_layer(
    projection_dim=768, name="projection", *, use_bias=False, activation=None
):
    """Builds the projection, in float32; that of the papers by default.

    Args:
        projection_dim: int. Width of the embeddings. Defaults to `768`.
        name: str.
        use_bias: bool. Defaults to `False`.
        activation: str or `None`. Name of a Keras activation. Defaults to
            `None`, a linear layer.

    Returns:
        `keras.layers.Dense`, initialised by truncated normal, fan-in scaling.
    """
    return keras.layers.Dense(
        projection_dim,
        activation=activation,
        use_bias=use_bias,
        kernel_initializer=keras.initializers.VarianceScaling(
            1.0, mode="fan_in", distribution="truncated_normal"
        ),
        dtype="float32",
        name=name,
    )
