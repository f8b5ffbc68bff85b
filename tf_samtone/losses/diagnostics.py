"""What a batch says about the space that is being learned."""

from typing import Any

import tensorflow as tf

from tf_samtone.losses.contrastive_loss import ContrastiveLoss
from tf_samtone.losses.pair_batch import PairBatch
from tf_samtone.losses.tiled_softmax import tiled_statistics

__all__ = ["DIAGNOSTICS", "contrastive_diagnostics"]

DIAGNOSTICS = (
    "alignment",
    "uniformity",
    "cross_similarity",
    "same_tower_similarity",
    "same_tower_share",
    "masked_pairs",
)
_TILE_SIZE = 512


def contrastive_diagnostics(
    loss: ContrastiveLoss, queries: Any, documents: Any, **batch: Any
) -> dict[str, tf.Tensor]:
    """Computes figures of the embedding space, one value per local row.

    - `alignment`: |q_i - p_i|^2, in [0, 4].
    - `uniformity`: mean over j != i of exp(-2 |q_i - q_j|^2); Wang and Isola
      report the logarithm of its mean over the rows.
    - `cross_similarity`: mean over j != i of s(q_i, p_j).
    - `same_tower_similarity`: mean over j != i of s(q_i, q_j).
    - `same_tower_share`: share of the softmax denominators that comes from
      same-tower negatives, in [0, 1].
    - `masked_pairs`: columns of other examples that are not negatives.

    A batch of one has no other rows: the means are 0.

    Args:
        loss: `ContrastiveLoss`.
        queries: float `[rows, dim]`, unit vectors.
        documents: float `[rows, dim]`.
        **batch: as for `ContrastiveLoss.per_example`.

    Returns:
        dict of float `[rows]`, without gradients.

    Reference:
        Wang and Isola, 2020, Understanding Contrastive Representation Learning
        through Alignment and Uniformity on the Hypersphere,
        https://arxiv.org/abs/2005.10242
    """
    pairs = PairBatch.checked(
        tf.stop_gradient(queries),
        tf.stop_gradient(documents),
        mask_duplicates=loss.mask_duplicates,
        **batch,
    )
    cross = tf.reduce_sum(pairs.queries * pairs.documents, axis=1)
    own = tf.reduce_sum(tf.square(pairs.queries), axis=1)
    others = _num_others(pairs)
    figures = {
        "alignment": own
        + tf.reduce_sum(tf.square(pairs.documents), axis=1)
        - 2.0 * cross,
        "uniformity": _sum_of_potentials(pairs) / others,
        # Sums over all columns need no matrix of similarities.
        "cross_similarity": (_total(pairs, "all_documents") - cross) / others,
        "same_tower_similarity": (_total(pairs, "all_queries") - own) / others,
        "same_tower_share": loss.same_tower_share(pairs),
        "masked_pairs": loss.count_masked(pairs),
    }
    return {name: tf.stop_gradient(row) for name, row in figures.items()}


def _num_others(pairs: PairBatch) -> tf.Tensor:
    block = pairs.without_ids().other_tower_block("query")
    return tf.maximum(block.num_candidates(), 1.0)


def _total(pairs: PairBatch, name: str) -> tf.Tensor:
    columns = tf.reduce_sum(getattr(pairs, name), axis=0)
    return tf.linalg.matvec(pairs.queries, columns)


def _sum_of_potentials(pairs: PairBatch) -> tf.Tensor:
    """Returns sum over j != i of exp(-2 |q_i - q_j|^2) for unit vectors."""
    # exp(4 s - 4): the softmax kernel at scale 4 with a reference of 0 gives
    # log(1 + sum exp(4 s)) in memory linear in the batch.
    block = pairs.without_ids().same_tower_block("query")
    statistics = tiled_statistics(
        pairs.queries,
        tf.zeros_like(pairs.queries[:, 0]),
        tf.constant(4.0, pairs.queries.dtype),
        [block],
        _TILE_SIZE,
    )
    factor = tf.exp(tf.constant(-4.0, statistics.excess.dtype))
    return tf.math.expm1(statistics.excess) * factor
