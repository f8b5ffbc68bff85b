"""The PAIR loss: document-side similarities as a second loss."""

import keras

from tf_samtone.losses import _checks
from tf_samtone.losses.contrastive_loss import ContrastiveLoss

FORMS = ("same_tower", "hard_negatives")


@keras.saving.register_keras_serializable(package="tf_samtone")
class PairLoss(ContrastiveLoss):
    r"""Weighted sum of a query-centric and a document-centric softmax.

        loss = (1 - alpha) * L_c + alpha * L_P

    L_c is the plain in-batch softmax (with hard negatives, if given). In the
    form `"same_tower"`, as the SamToNe paper uses PAIR, L_P holds the other
    documents against a document:

        L_P_i = -log( exp(s(p_i, q_i)/t)
                      / ( exp(s(p_i, q_i)/t)
                          + sum_{j != i} exp(s(p_i, p_j)/t) ) )

    (the positive is in the denominator; printed without it, the loss has no
    lower bound). In the form `"hard_negatives"`, that of the authors' code, L_P
    is the document-to-query softmax with the hard negatives as more columns,
    and L_c has the query-to-document direction only.

    >>> loss = PairLoss(temperature=0.5, bidirectional=False)
    >>> queries = [[1.0, 0.0], [0.0, 1.0]]
    >>> documents = [[0.8, 0.6], [0.0, 1.0]]
    >>> print(f"{float(loss(queries, documents)):.4f}")
    0.2940

    Use it with `compile`:

    >>> # model.compile(optimizer="adam", loss=PairLoss())

    Args:
        temperature: float > 0, or `LearnedTemperature`. Divides every
            similarity. Defaults to `0.01`.
        alpha: float in [0, 1]. Weight of L_P. Defaults to `0.1`.
        form: str. `"same_tower"` or `"hard_negatives"`. Defaults to
            `"same_tower"`.
        name: str. Defaults to `"pair"`.
        **options: see `ContrastiveLoss`; `bidirectional` and
            `direction_reduction` shape L_c of the form `"same_tower"`.

    Call arguments:
        queries: float `[batch, dim]`, unit vectors.
        documents: float `[batch, dim]`, row i answers query i.

    Returns:
        float32 scalar after reduction; `per_example` returns `[batch]`.

    Raises:
        InvalidInputError: if an argument is out of its range, or shapes do not
            fit.

    Reference:
        Ren et al., 2021, PAIR: Leveraging Passage-Centric Similarity Relation
        for Improving Dense Passage Retrieval, https://arxiv.org/abs/2108.06027
    """

    def __init__(
        self,
        temperature=0.01,
        alpha=0.1,
        form="same_tower",
        *,
        name="pair",
        **options,
    ):
        super().__init__(temperature, name=name, **options)
        _checks.check_number("alpha", alpha, least=0.0, at_most=1.0)
        _checks.check_choice("form", form, FORMS)
        self.alpha = float(alpha)
        self.form = form

    def _loss(self, pairs):
        *query_centric, document_centric = self._directions(pairs)
        losses = [direction.loss() for direction in query_centric]
        total = sum(losses[1:], losses[0])
        if self.direction_reduction == "mean":
            total /= float(len(losses))
        document_loss = document_centric.loss()
        return (1.0 - self.alpha) * total + self.alpha * document_loss

    def _directions(self, pairs):
        if self.form == "same_tower":
            blocks = [
                pairs.same_tower_block("document", self.same_tower_weight)
            ]
            return [
                *super()._directions(pairs),
                self._softmax(pairs, "document", blocks),
            ]
        return [
            self._direction(
                pairs, side, same_tower=False, with_hard_negatives=True
            )
            for side in ("query", "document")
        ]

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha, "form": self.form}
