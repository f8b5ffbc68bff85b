"""The SamToNe loss: same-tower negatives in the same softmax."""

import keras

from tf_samtone.losses import _checks
from tf_samtone.losses.contrastive_loss import ContrastiveLoss

SAME_TOWER_SIDES = {
    "query": ("query",),
    "document": ("document",),
    "both": ("query", "document"),
}


@keras.saving.register_keras_serializable(package="tf_samtone")
class SamToNeLoss(ContrastiveLoss):
    r"""Contrastive softmax loss with same-tower negatives.

    For row i, with similarity s and temperature t, the query side is

        loss_i = -log( exp(s(q_i, p_i)/t)
                       / ( sum_j exp(s(q_i, p_j)/t)
                           + sum_{j != i} exp(s(q_i, q_j)/t) ) )

    With `bidirectional=True` the document-to-query direction is added; it has
    its own same-tower terms s(p_i, p_j) if `same_tower` is `"document"` or
    `"both"`, and is the plain softmax otherwise (the paper's default).

    >>> loss = SamToNeLoss(temperature=0.5)
    >>> queries = [[1.0, 0.0], [0.0, 1.0]]
    >>> documents = [[0.8, 0.6], [0.0, 1.0]]
    >>> print(f"{float(loss(queries, documents)):.4f}")
    0.7197

    Use it with `compile`:

    >>> # model.compile(optimizer="adam", loss=SamToNeLoss())

    Args:
        temperature: float > 0, or `LearnedTemperature`. Divides every
            similarity. Defaults to `0.01`.
        same_tower: str. Side whose own tower gives negatives: `"query"`,
            `"document"` or `"both"`. Defaults to `"query"`.
        name: str. Defaults to `"samtone"`.
        **options: see `ContrastiveLoss`. The paper has no mask of duplicates;
            `mask_duplicates=False` is its loss to the letter.

    Call arguments:
        queries: float `[batch, dim]`, unit vectors.
        documents: float `[batch, dim]`, row i answers query i.

    Returns:
        float32 scalar after reduction; `per_example` returns `[batch]`.

    Raises:
        InvalidInputError: if an argument is out of its range, or shapes do not
            fit.

    Reference:
        Moiseev et al., 2023, SamToNe: Improving Contrastive Loss for Dual
        Encoder Retrieval Models with Same Tower Negatives,
        https://arxiv.org/abs/2306.02516
    """

    def __init__(
        self,
        temperature=0.01,
        same_tower="query",
        *,
        name="samtone",
        **options,
    ):
        super().__init__(temperature, name=name, **options)
        _checks.check_choice("same_tower", same_tower, SAME_TOWER_SIDES)
        _checks.check_directions(same_tower, self.bidirectional)
        self.same_tower = same_tower
        self.same_tower_sides = SAME_TOWER_SIDES[same_tower]

    def get_config(self):
        return {**super().get_config(), "same_tower": self.same_tower}
