"""How much memory a training step takes, by a formula."""

import dataclasses
import math
from dataclasses import dataclass

from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.trainers.training_load import TrainingLoad

# ContrastiveLoss's own: dense up to so many columns, tiles above.
_DENSE_COLUMNS = 2048
_TILE_SIZE = 256
_MIN_FACTORED_DIM = 128


@dataclass(frozen=True, kw_only=True)
class MemoryEstimate:
    """Bytes of one device during a training step, term by term.

    With P weights, hidden width d, heads' width i (all heads), feed-forward
    width f, H heads, L places per text, and c bytes per value of the compute
    dtype (4, or 2 for bfloat16):

        weights      4 P; with bfloat16 also their copies, 2 P
        gradients    4 P, once more for each of: several devices (the
                     all-reduce's result), clipping, the gradient cache (the
                     sum over micro-batches)
        optimizer    Adafactor 4 (rows + columns) of every matrix whose sides
                     are both 128 or more, and 4 bytes for each other weight;
                     AdamW 8 P
        activations  of one place in one layer, kept for the backward pass:
                       2 norms        2 d (2 c + 4), bfloat16 2 d (2 c + 8)
                       q, k, v, out   4 i c
                       softmax        H L 4, bfloat16 H L (4 + c)
                       feed-forward   f c times 7 (gated GELU), 5 (GELU),
                                      3 (gated ReLU) or 1 (ReLU)
                       dropout        2 d + f + H L (1 + c)
                     times layers times places of the pairs embedded at once
                     (the micro-batch of a gradient cache). Rematerialised: d c
                     per place and layer, and one layer's own activations
                     twice (measured: its second pass holds temporaries)
        workspace    the activations of one layer once more, while it is
                     differentiated, or three float32 copies of the largest
                     weight during its update: the larger one
        embeddings   of the device's pairs 4 times (pooled, projected, unit
                     length, gradient), of the global batch twice, float32
        loss         6 tiles (or the dense matrix up to 2048 columns) of the
                     device's rows, and as many again for in-batch metrics over
                     all columns

    The sum ignores what the runtime itself takes. Compilers that fuse (XLA)
    keep less: the feed-forward term is the one that shrinks.
    `docs/memory.md` holds the formula against measurements.

    Attributes:
        weights: int, bytes; as all the others.
        gradients: int.
        optimizer: int.
        activations: int.
        workspace: int.
        embeddings: int.
        loss: int.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    workspace: int
    embeddings: int
    loss: int

    @classmethod
    def of(cls, size: EncoderSize, load: TrainingLoad) -> "MemoryEstimate":
        """Estimates a training step.

        Args:
            size: `EncoderSize`.
            load: `TrainingLoad`.

        Returns:
            `MemoryEstimate` of each device.
        """
        shapes = _shapes(size, load)
        parameters = sum(math.prod(shape) for shape in shapes)
        copies = 1 + (load.devices > 1) + load.clips
        copies += load.gradient_cache_batch_size > 0
        largest = max(math.prod(shape) for shape in shapes)
        return cls(
            weights=parameters * (4 if load.bytes_per_value == 4 else 6),
            gradients=4 * parameters * copies,
            optimizer=_optimizer_bytes(shapes, load.optimizer),
            activations=_activation_bytes(size, load),
            workspace=max(
                12 * largest,
                int(load.encoded_pairs * _one_layer_bytes(size, load)),
            ),
            embeddings=_embedding_bytes(load),
            loss=_loss_bytes(load),
        )

    @property
    def total(self) -> int:
        """Sum of all terms, in bytes."""
        return sum(dataclasses.asdict(self).values())


def _shapes(size: EncoderSize, load: TrainingLoad) -> list[tuple[int, ...]]:
    """Returns the shapes of all weights of both towers."""
    encoder = size.shapes()
    projection = (size.hidden_dim, load.projection_dim)
    if load.architecture == "sde":
        return [*encoder, projection]
    shared = {"ade-ste": encoder[:1], "ade-fte": encoder[:1]}
    twin = encoder[len(shared.get(load.architecture, [])) :]
    projections = 1 if load.architecture == "ade-spl" else 2
    return [*encoder, *twin, *[projection] * projections]


def _optimizer_bytes(shapes: list[tuple[int, ...]], optimizer: str) -> int:
    if optimizer == "adamw":
        return 8 * sum(math.prod(shape) for shape in shapes)
    return 4 * sum(
        sum(shape)
        if len(shape) == 2 and min(shape) >= _MIN_FACTORED_DIM
        else math.prod(shape)
        for shape in shapes
    )


def _activation_bytes(size: EncoderSize, load: TrainingLoad) -> int:
    """Returns what the backward pass of the encoders needs."""
    one_layer = _one_layer_bytes(size, load)
    kept = size.num_layers * one_layer
    if load.rematerialize:
        inputs = size.num_layers * size.hidden_dim * load.bytes_per_value
        # Twice: fitted to measurements, see docs/memory.md.
        kept = inputs * sum(_places(load)) + 2 * one_layer
    # The norm at the end keeps what one of a layer's two norms does.
    kept += _norm_bytes(size, load) * sum(_places(load))
    return int(kept * load.encoded_pairs)


def _places(load: TrainingLoad) -> tuple[float, float]:
    """Returns places of the queries and of the documents of one pair."""
    documents = load.document_rows * (1 + load.hard_negatives)
    return (
        load.query_length * load.query_rows,
        load.document_length * documents,
    )


def _one_layer_bytes(size: EncoderSize, load: TrainingLoad) -> float:
    """Returns what one pair keeps in one layer."""
    queries, documents = _places(load)
    return queries * _layer_bytes(size, load, load.query_length) + (
        documents * _layer_bytes(size, load, load.document_length)
    )


def _norm_bytes(size: EncoderSize, load: TrainingLoad) -> int:
    # Input and output in the compute dtype; in float32 the normalised values,
    # and in bfloat16 also the float32 copy of the input.
    width = load.bytes_per_value
    return size.hidden_dim * (2 * width + (4 if width == 4 else 8))


def _layer_bytes(size: EncoderSize, load: TrainingLoad, length: int) -> int:
    """Returns what one place of a text keeps in one layer."""
    width = load.bytes_per_value
    attention = size.num_heads * length
    total = 2 * _norm_bytes(size, load)
    total += 4 * size.inner_dim * width
    total += attention * (4 if width == 4 else 4 + width)
    # GELU's tanh form keeps its input, half of it, tanh, 1 + tanh and the
    # product; a gate keeps itself and one more product.
    tensors = 5 if size.activation == "gelu" else 1
    tensors += 2 if size.use_gated_activation else 0
    total += tensors * size.intermediate_dim * width
    if load.dropout:
        total += 2 * size.hidden_dim + size.intermediate_dim
        total += attention * (1 + width)
    return total


def _embedding_bytes(load: TrainingLoad) -> int:
    texts = 2 + load.hard_negatives
    vector = 4 * load.projection_dim * texts
    return vector * (4 * load.local_batch + 2 * load.batch_size)


def _loss_bytes(load: TrainingLoad) -> int:
    columns = load.batch_size * (2 + load.hard_negatives)
    tile = columns if columns <= _DENSE_COLUMNS else _TILE_SIZE
    return 4 * load.local_batch * 6 * (tile + load.batch_size)
