"""The weights of a T5 encoder and what each format calls them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tf_samtone.models.encoder_size import EncoderSize

__all__ = ["EncoderTensor", "encoder_tensors", "encoder_variables"]

# (our layer, Hugging Face, t5x)
_ATTENTION = (
    ("query_projector", "q", "query"),
    ("key_projector", "k", "key"),
    ("value_projector", "v", "value"),
    ("output_projector", "o", "out"),
)


@dataclass(frozen=True)
class EncoderTensor:
    """One weight.

    Attributes:
        hugging_face: str. Key in a state dict.
        t5x: str. Name below the model, with dots.
        layers: tuple of str. Path of attributes from a `T5Encoder` to the
            layer; an int is an index.
        variable: str. Attribute of that layer.
        shape: tuple of int, as here. Kernels are [in, out], in t5x too.
        is_kernel: bool. Whether torch holds it as [out, in].
    """

    hugging_face: str
    t5x: str
    layers: tuple[str | int, ...]
    variable: str
    shape: tuple[int, ...]
    is_kernel: bool = False

    @property
    def torch_shape(self) -> tuple[int, ...]:
        """The shape in a torch state dict."""
        return self.shape[::-1] if self.is_kernel else self.shape

    def variable_of(self, encoder: Any) -> Any:
        """Return the Keras variable of an encoder."""
        layer = encoder
        for part in self.layers:
            is_index = isinstance(part, int)
            layer = layer[part] if is_index else getattr(layer, str(part))
        return getattr(layer, self.variable)


def encoder_tensors(size: EncoderSize) -> list[EncoderTensor]:
    """List the weights of an encoder, without making it.

    Args:
        size: `EncoderSize`.

    Returns:
        list of `EncoderTensor`, in the order of the layers.
    """
    return [
        EncoderTensor(
            "shared.weight",
            "token_embedder.embedding",
            ("token_embedding",),
            "embeddings",
            (size.vocabulary_size, size.hidden_dim),
        ),
        EncoderTensor(
            "encoder.block.0.layer.0.SelfAttention."
            "relative_attention_bias.weight",
            "encoder.relpos_bias.rel_embedding",
            ("position_bias",),
            "relative_attention_bias",
            (32, size.num_heads),
        ),
        *[t for i in range(size.num_layers) for t in _layer(size, i)],
        EncoderTensor(
            "encoder.final_layer_norm.weight",
            "encoder.encoder_norm.scale",
            ("encoder_layer_norm",),
            "weight",
            (size.hidden_dim,),
        ),
    ]


def encoder_variables(encoder: Any) -> list[Any]:
    """List the Keras variables of a `T5Encoder`, in the same order."""
    tensors = encoder_tensors(EncoderSize.of_encoder(encoder))
    return [tensor.variable_of(encoder) for tensor in tensors]


def _layer(size: EncoderSize, i: int) -> Iterator[EncoderTensor]:
    layer = ("encoder_transformer_layers", i)
    hugging_face = f"encoder.block.{i}.layer"
    t5x = f"encoder.layers_{i}"
    hidden, inner = size.hidden_dim, size.inner_dim
    wide = size.intermediate_dim
    yield EncoderTensor(
        f"{hugging_face}.0.layer_norm.weight",
        f"{t5x}.pre_attention_layer_norm.scale",
        (*layer, "self_attention_layer_norm"),
        "weight",
        (hidden,),
    )
    for ours, theirs, t5x_name in _ATTENTION:
        yield EncoderTensor(
            f"{hugging_face}.0.SelfAttention.{theirs}.weight",
            f"{t5x}.attention.{t5x_name}.kernel",
            (*layer, "self_attention", ours),
            "kernel",
            (inner, hidden) if theirs == "o" else (hidden, inner),
            is_kernel=True,
        )
    yield EncoderTensor(
        f"{hugging_face}.1.layer_norm.weight",
        f"{t5x}.pre_mlp_layer_norm.scale",
        (*layer, "layer_norm"),
        "weight",
        (hidden,),
    )
    dense = f"{hugging_face}.1.DenseReluDense"
    names = {"input_projector": "wi"}
    if size.use_gated_activation:
        names = {"input_projector": "wi_0", "gate_projector": "wi_1"}
    for ours, theirs in {**names, "output_projector": "wo"}.items():
        yield EncoderTensor(
            f"{dense}.{theirs}.weight",
            f"{t5x}.mlp.{theirs}.kernel",
            (*layer, ours),
            "kernel",
            (wide, hidden) if theirs == "wo" else (hidden, wide),
            is_kernel=True,
        )
