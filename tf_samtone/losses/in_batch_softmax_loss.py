"""The plain in-batch softmax loss."""

import keras

from tf_samtone.losses.contrastive_loss import ContrastiveLoss


@keras.saving.register_keras_serializable(package="tf_samtone")
class InBatchSoftmaxLoss(ContrastiveLoss):
    r"""Contrastive softmax loss over the other examples of the batch.

    For row i, with similarity s and temperature t:

        loss_i = -log( exp(s(q_i, p_i)/t) / sum_j exp(s(q_i, p_j)/t) )

    With `bidirectional=True` the same with queries and documents swapped is
    added, as in t5x_retrieval.

    >>> loss = InBatchSoftmaxLoss(temperature=0.5)
    >>> queries = [[1.0, 0.0], [0.0, 1.0]]
    >>> documents = [[0.8, 0.6], [0.0, 1.0]]
    >>> print(f"{float(loss(queries, documents)):.4f}")
    0.5975

    Use it with `compile`:

    >>> # model.compile(optimizer="adam", loss=InBatchSoftmaxLoss())

    Args:
        temperature: float > 0, or `LearnedTemperature`. Divides every
            similarity. Defaults to `0.01`.
        name: str. Defaults to `"in_batch_softmax"`.
        **options: see `ContrastiveLoss`.

    Call arguments:
        queries: float `[batch, dim]`, unit vectors.
        documents: float `[batch, dim]`, row i answers query i.

    Returns:
        float32 scalar after reduction; `per_example` returns `[batch]`.

    Raises:
        InvalidInputError: if an argument is out of its range, or shapes do not
            fit.

    Reference:
        Ni et al., 2021, Large Dual Encoders Are Generalizable Retrievers,
        https://arxiv.org/abs/2112.07899
    """

    def __init__(self, temperature=0.01, *, name="in_batch_softmax", **options):
        super().__init__(temperature, name=name, **options)
