"""Where Keras's weight files hold the tensors of a T5 encoder."""

from dataclasses import dataclass

from tf_samtone.checkpoints._encoder_tensors import (
    EncoderTensor,
    encoder_tensors,
)
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.errors import MismatchError
from tf_samtone.models.encoder_size import EncoderSize

__all__ = ["BACKBONE_LAYOUT", "ENCODER_LAYOUT", "EncoderLayout"]


@dataclass(frozen=True)
class EncoderLayout:
    """Names that Keras gives to the layers of a model, by their classes.

    Equal classes are counted: `layer`, `layer_1`, and so on.

    Attributes:
        embedding: str. The token embedding.
        position_bias: str. The layer that owns the position bias.
        layer: str. A transformer layer.
        layer_norm: str. The last layer norm.
        has_decoder: bool. Whether a decoder of as many layers follows.
    """

    embedding: str
    position_bias: str
    layer: str
    layer_norm: str
    has_decoder: bool

    def name(self, tensor: EncoderTensor) -> str:
        """Return the path of a tensor inside the file."""
        first, *others = tensor.layers
        if first == "encoder_transformer_layers":
            number, *inner = others
            path = "/".join(
                [_counted(self.layer, int(number)), *map(str, inner)]
            )
        else:
            path = {
                "token_embedding": self.embedding,
                "position_bias": self.position_bias,
                "encoder_layer_norm": self.layer_norm,
            }[str(first)]
        return f"layers/{path}/vars/0"

    def decoder_prefixes(self, size: EncoderSize) -> tuple[str, ...]:
        """Return how the paths of the decoder's tensors begin."""
        if not self.has_decoder:
            return ()
        layers = range(size.num_layers, 2 * size.num_layers)
        return (
            # The output layer, if its weights are not the embeddings.
            f"layers/{self.embedding}/vars/1",
            f"layers/{_counted(self.layer_norm, 1)}/",
            *[f"layers/{_counted(self.layer, i)}/" for i in layers],
        )

    def names(
        self, weights: KerasHubWeights, size: EncoderSize
    ) -> list[str] | None:
        """Find the tensors of an encoder in a file.

        Args:
            weights: the file.
            size: `EncoderSize` that the config implies.

        Returns:
            The paths in the order of `encoder_tensors`, or `None` if the file
            has none of them: that of another version of Keras.

        Raises:
            MismatchError: names missing, surplus and misshapen tensors.
        """
        tensors = {
            self.name(tensor): tensor for tensor in encoder_tensors(size)
        }
        if not tensors.keys() & weights.shapes.keys():
            return None
        decoder = self.decoder_prefixes(size)
        missing = sorted(tensors.keys() - weights.shapes.keys())
        surplus = sorted(
            name
            for name in weights.shapes.keys() - tensors.keys()
            if not name.startswith(decoder)
        )
        if missing or surplus:
            raise MismatchError(
                f"Expected in {weights.path} the tensors of the encoder that "
                f"config.json describes. Received: missing={missing}, "
                f"surplus={surplus}. Use the config that belongs to the "
                "weights."
            )
        for name, tensor in tensors.items():
            if weights.shapes[name] != tensor.shape:
                raise MismatchError(
                    f"Expected {name} of shape {tensor.shape}, as config.json "
                    f"implies. Received: shape={weights.shapes[name]} in "
                    f"{weights.path}. Use the config that belongs to the "
                    "weights."
                )
        return list(tensors)


BACKBONE_LAYOUT = EncoderLayout(
    embedding="reversible_embedding",
    position_bias="t5_transformer_layer/self_attention",
    layer="t5_transformer_layer",
    layer_norm="t5_layer_norm",
    has_decoder=True,
)
ENCODER_LAYOUT = EncoderLayout(
    embedding="embedding",
    position_bias="t5_position_bias",
    layer="t5_encoder_layer",
    layer_norm="t5_layer_norm",
    has_decoder=False,
)


def _counted(name: str, number: int) -> str:
    return f"{name}_{number}" if number else name
