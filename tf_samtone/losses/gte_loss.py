"""The GTE loss: all four blocks in one softmax."""

import keras
import tensorflow as tf

from tf_samtone.losses import _checks
from tf_samtone.losses.contrastive_loss import ContrastiveLoss


@keras.saving.register_keras_serializable(package="tf_samtone")
class GTELoss(ContrastiveLoss):
    r"""One softmax over both directions and both same-tower blocks.

        loss_i = -log( exp(s(q_i, p_i)/t)
                       / ( sum_j exp(s(q_i, p_j)/t)
                           + sum_{j != i} exp(s(q_i, q_j)/t)
                           + sum_{j != i} exp(s(q_j, p_i)/t)
                           + sum_{j != i} exp(s(p_i, p_j)/t) ) )

    The published code counts the positive twice, once per direction, so that
    its loss cannot go below log 2; `count_positive_twice=True` is that loss.
    Hard negatives are columns of the query.

    >>> loss = GTELoss(temperature=0.5)
    >>> queries = [[1.0, 0.0], [0.0, 1.0]]
    >>> documents = [[0.8, 0.6], [0.0, 1.0]]
    >>> print(f"{float(loss(queries, documents)):.4f}")
    0.8920

    Use it with `compile`:

    >>> # model.compile(optimizer="adam", loss=GTELoss())

    Args:
        temperature: float > 0, or `LearnedTemperature`. Divides every
            similarity. Defaults to `0.01`.
        count_positive_twice: bool. Defaults to `False`.
        name: str. Defaults to `"gte"`.
        **options: see `ContrastiveLoss`; `bidirectional`,
            `direction_reduction` and `label_smoothing` have no meaning here
            and keep their defaults.

    Call arguments:
        queries: float `[batch, dim]`, unit vectors.
        documents: float `[batch, dim]`, row i answers query i.

    Returns:
        float32 scalar after reduction; `per_example` returns `[batch]`.

    Raises:
        InvalidInputError: if an argument is out of its range, or shapes do not
            fit.

    Reference:
        Li et al., 2023, Towards General Text Embeddings with Multi-stage
        Contrastive Learning, https://arxiv.org/abs/2308.03281
    """

    same_tower_sides = ("query", "document")

    def __init__(
        self,
        temperature=0.01,
        count_positive_twice=False,
        *,
        name="gte",
        **options,
    ):
        super().__init__(temperature, name=name, **options)
        _checks.check_unused(
            self,
            "Use SamToNeLoss for one softmax per direction.",
            bidirectional=True,
            direction_reduction="sum",
            label_smoothing=0.0,
        )
        self.count_positive_twice = bool(count_positive_twice)

    def _loss(self, pairs):
        # exp(excess) = 1 + sum of the direction's negatives, relative to the
        # one positive that both directions share.
        a, b = (d.statistics().excess for d in self._directions(pairs))
        highest = tf.maximum(a, b)
        total = tf.exp(a - highest) + tf.exp(b - highest)
        if not self.count_positive_twice:
            total -= tf.exp(-highest)
        return highest + tf.math.log(total)

    def get_config(self):
        config = super().get_config()
        config["count_positive_twice"] = self.count_positive_twice
        return config
