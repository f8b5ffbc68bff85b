"""Names and shapes of the encoders in a t5x checkpoint."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tf_samtone.checkpoints._encoder_tensors import (
    EncoderTensor,
    encoder_tensors,
)
from tf_samtone.checkpoints._t5x_arrays import T5xArrays
from tf_samtone.errors import InvalidInputError, MismatchError
from tf_samtone.models.encoder_size import EncoderSize

__all__ = [
    "T5xTower",
    "array_names",
    "check_arrays",
    "common_size",
    "projection_width",
    "read_t5x_size",
    "read_t5x_towers",
]

_EMBEDDING = "token_embedder.embedding"
_NUM_BUCKETS = 32
# Layers that flax runs in a loop are stored in one array each: flaxformer's
# name and that of t5x's scalable_t5.
_SCANNED = ("encoder.", "layers.")
_ACTIVATIONS = ("gelu", "relu")


@dataclass(frozen=True)
class T5xTower:
    """Where the weights of one tower are.

    Attributes:
        encoder: str. `"encoder"`, `"left_encoder"` or `"right_encoder"`.
        embedding: str. Name of the token embeddings, which two towers may
            share.
        projection: str or `None`. Name of the projection's kernel.
    """

    encoder: str
    embedding: str
    projection: str | None


def read_t5x_towers(arrays: T5xArrays) -> list[T5xTower]:
    """List the towers of a checkpoint.

    Args:
        arrays: `T5xArrays`.

    Returns:
        One `T5xTower`, or flaxformer's left and right one, which are those of
        the queries and of the documents.

    Raises:
        MismatchError: if there is no encoder.
    """
    sides = [
        side
        for side in ("", "left_", "right_")
        if any(name.startswith(f"{side}encoder.") for name in arrays.shapes)
    ]
    if sides not in ([""], ["left_", "right_"]):
        raise MismatchError(
            "Expected weights named `encoder.*`, or `left_encoder.*` and "
            f"`right_encoder.*`. Received: {sorted(arrays.shapes)[:8]}... Use "
            "a checkpoint of T5 or of a dual encoder of t5x_retrieval."
        )
    return [_tower(arrays, side) for side in sides]


def read_t5x_size(
    arrays: T5xArrays,
    tower: T5xTower | None = None,
    activation: str | None = None,
) -> EncoderSize:
    """Infer the sizes of an encoder from the shapes of its weights.

    Args:
        arrays: `T5xArrays`.
        tower: `T5xTower`. Defaults to `None`, the first one.
        activation: str. `"gelu"` (tanh approximation) or `"relu"`. The
            checkpoint does not say. Defaults to `None`, that of T5 1.1,
            `"gelu"`, if the feed-forward part is gated and that of T5 1.0,
            `"relu"`, if not.

    Returns:
        `EncoderSize`.

    Raises:
        InvalidInputError: if the activation is unknown.
        MismatchError: if the weights are not those of a T5 encoder with
            separate layers and one position bias.
    """
    if activation not in (*_ACTIVATIONS, None):
        raise InvalidInputError(
            f"Expected `activation` to be one of {_ACTIVATIONS} or None. "
            f"Received: activation={activation!r}. Look it up in the gin "
            "config of the checkpoint."
        )
    tower = tower or read_t5x_towers(arrays)[0]
    num_layers = _num_layers(arrays, tower.encoder)
    layer = f"{tower.encoder}.layers_0"
    gated = f"{layer}.mlp.wi_0.kernel" in arrays.shapes
    wide = f"{layer}.mlp.{'wi_0' if gated else 'wi'}.kernel"
    heads = _num_heads(arrays, f"{tower.encoder}.relpos_bias.rel_embedding")
    query = _shape(arrays, f"{layer}.attention.query.kernel", (2, 3))
    inner = query[1] if len(query) == 2 else query[1] * query[2]
    if not inner or inner % heads:
        raise MismatchError(
            f"Expected a query kernel for {heads} heads of one width, as "
            f"{tower.encoder}.relpos_bias has. Received: "
            f"{layer}.attention.query.kernel of shape {query}. Get the "
            "checkpoint again."
        )
    vocabulary_size, hidden_dim = _shape(arrays, tower.embedding, (2,))
    return EncoderSize(
        vocabulary_size=vocabulary_size,
        num_layers=num_layers,
        num_heads=heads,
        hidden_dim=hidden_dim,
        intermediate_dim=_shape(arrays, wide, (2,))[1],
        key_value_dim=inner // heads,
        activation=activation or ("gelu" if gated else "relu"),
        use_gated_activation=gated,
    )


def common_size(
    arrays: T5xArrays, towers: list[T5xTower], activation: str | None
) -> EncoderSize:
    """Infer the sizes of an encoder, which both towers have to share.

    Args:
        arrays: `T5xArrays`.
        towers: its towers.
        activation: str or `None`. See `read_t5x_size`.

    Returns:
        `EncoderSize`.

    Raises:
        InvalidInputError, MismatchError: as `read_t5x_size`.
        MismatchError: if the towers have other sizes.
    """
    sizes = [read_t5x_size(arrays, tower, activation) for tower in towers]
    if sizes[0] != sizes[-1]:
        raise MismatchError(
            "Expected two towers of one size. Received: "
            f"left_encoder={sizes[0]}, right_encoder={sizes[1]}. Use a "
            "checkpoint with equal towers."
        )
    return sizes[0]


def projection_width(arrays: T5xArrays, towers: list[T5xTower]) -> int:
    """Return the width of the towers' projections, 0 for none.

    Args:
        arrays: `T5xArrays`.
        towers: its towers.

    Raises:
        MismatchError: if the towers have other projections.
    """
    shapes = [arrays.shapes.get(t.projection or "", (0, 0)) for t in towers]
    widths = {shape[-1] if len(shape) == 2 else None for shape in shapes}
    width = widths.pop()
    if width is None or widths:
        raise MismatchError(
            "Expected a projection kernel [hidden_dim, projection_dim] of one "
            f"width in every tower, or in none. Received: shapes={shapes}. Use "
            "another checkpoint."
        )
    return width


def array_names(
    size: EncoderSize, tower: T5xTower
) -> Iterator[tuple[EncoderTensor, str]]:
    """Yield every weight of an encoder and its name in the checkpoint."""
    for tensor in encoder_tensors(size):
        name = tensor.t5x.replace("encoder.", f"{tower.encoder}.", 1)
        yield tensor, tower.embedding if tensor.t5x == _EMBEDDING else name


def check_arrays(
    arrays: T5xArrays,
    towers: list[T5xTower],
    size: EncoderSize,
    projection_dim: int,
) -> None:
    """Refuse missing, surplus and misshapen arrays before any is copied.

    Args:
        arrays: `T5xArrays`.
        towers: the towers that use them.
        size: `EncoderSize` of every tower.
        projection_dim: int. Width of the towers' projections, if any.

    Raises:
        MismatchError: names the arrays, and both shapes.
    """
    expected: dict[str, list[tuple[int, ...]]] = {}
    for tower in towers:
        for tensor, name in array_names(size, tower):
            expected[name] = _stored_shapes(tensor, size)
        if tower.projection:
            expected[tower.projection] = [(size.hidden_dim, projection_dim)]
    missing = sorted(expected.keys() - arrays.shapes.keys())
    surplus = sorted(arrays.shapes.keys() - expected.keys())
    if missing or surplus:
        raise MismatchError(
            f"Expected the weights of T5 encoders with {size.num_layers} "
            f"layers. Received: missing={missing}, surplus={surplus}. Use a "
            "checkpoint of T5 1.0, T5 1.1 or a dual encoder of them."
        )
    for name, shapes in expected.items():
        if arrays.shapes[name] not in shapes:
            raise MismatchError(
                f"Expected {name} of shape {shapes[0]}, as the other weights "
                f"imply. Received: shape={arrays.shapes[name]}. Get the "
                "checkpoint again."
            )


def _stored_shapes(
    tensor: EncoderTensor, size: EncoderSize
) -> list[tuple[int, ...]]:
    """Return the usual shape, and that with the heads on their own axis."""
    heads = (size.num_heads, size.key_value_dim)
    if tensor.t5x.endswith(".rel_embedding"):
        return [tensor.shape[::-1]]
    if tensor.t5x.endswith(".attention.out.kernel"):
        return [tensor.shape, (*heads, size.hidden_dim)]
    if ".attention." in tensor.t5x:
        return [tensor.shape, (size.hidden_dim, *heads)]
    return [tensor.shape]


def _tower(arrays: T5xArrays, side: str) -> T5xTower:
    own = f"{side}encoder.{_EMBEDDING}"
    projection = f"{side}projection_layer.kernel"
    return T5xTower(
        encoder=f"{side}encoder",
        embedding=own if own in arrays.shapes else _EMBEDDING,
        projection=projection if projection in arrays.shapes else None,
    )


def _num_layers(arrays: T5xArrays, encoder: str) -> int:
    for part in _SCANNED:
        scanned = f"{encoder}.{part}"
        found = [n for n in sorted(arrays.shapes) if n.startswith(scanned)]
        if found:
            raise MismatchError(
                f"Expected a layer per name, `{encoder}.layers_0` and so on. "
                f"Received: {found[0]} of shape {arrays.shapes[found[0]]}, the "
                "scanned layers of scan_layers=True. Save the checkpoint with "
                "scan_layers=False."
            )
    layer = re.compile(rf"{encoder}\.layers_([0-9]{{1,4}})\.")
    numbers = {int(m[1]) for n in arrays.shapes if (m := layer.match(n))}
    if not numbers:
        raise MismatchError(
            f"Expected layers named `{encoder}.layers_0` and so on. Received: "
            f"{sorted(arrays.shapes)[:8]}... Use a checkpoint of T5."
        )
    return max(numbers) + 1


def _num_heads(arrays: T5xArrays, name: str) -> int:
    heads, buckets = _shape(arrays, name, (2,))
    if buckets != _NUM_BUCKETS:
        raise MismatchError(
            f"Expected {name} with {_NUM_BUCKETS} buckets of distance. "
            f"Received: shape={(heads, buckets)}. Use a T5 with the usual "
            "relative positions."
        )
    return max(heads, 1)


def _shape(
    arrays: T5xArrays, name: str, ranks: tuple[int, ...]
) -> tuple[int, ...]:
    shape = arrays.shapes.get(name)
    if shape is None or len(shape) not in ranks:
        own = name.split(".")[:-2]
        beside = [n for n in arrays.shapes if n.split(".")[: len(own)] == own]
        raise MismatchError(
            f"Expected {name} with {' or '.join(map(str, ranks))} axes. "
            f"Received: shape={shape}, beside {sorted(beside)[:8]}. Fused "
            "kernels, position biases per layer and other encoders than T5's "
            "cannot be read."
        )
    return shape
