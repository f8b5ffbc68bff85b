"""Notices when all embeddings become one point."""

from collections.abc import Sequence

import keras
import numpy as np

from tf_samtone.analysis import mean_pairwise_cosine
from tf_samtone.errors import CollapseError

_PROBE_SIZE = 256


class CollapseGuard(keras.callbacks.Callback):
    """Stops a run whose document embeddings have become one point.

    Looks at a fixed probe of documents half way and at the end. A collapsed
    encoder stays so for ever: every similarity is 1, and the loss rests at the
    logarithm of the number of columns.

    Args:
        documents: texts; an even sample of 256 is the probe.
        total_steps: int. With those before `first_step`.
        threshold: float in (0, 1). Largest mean pairwise cosine that is
            accepted. Defaults to `0.99`.
        first_step: int. Steps done before this fit. Defaults to `0`.

    Raises:
        CollapseError: from `fit`, with what to change.
    """

    def __init__(
        self,
        documents: Sequence[str],
        total_steps: int,
        threshold: float = 0.99,
        *,
        first_step: int = 0,
    ) -> None:
        super().__init__()
        # A document that answers many questions must not look like a collapse.
        distinct = list(dict.fromkeys(documents))
        rows = np.linspace(0, len(distinct) - 1, _PROBE_SIZE).astype(int)
        self.probe = [distinct[i] for i in np.unique(rows)]
        self.check_steps = {max(1, total_steps // 2), total_steps}
        self.threshold = threshold
        self.first_step = first_step

    def on_train_batch_end(
        self, batch: int, logs: dict[str, float] | None = None
    ) -> None:
        step = self.first_step + batch + 1
        if step not in self.check_steps:
            return
        cosine = mean_pairwise_cosine(self.model.encode_documents(self.probe))
        if not cosine <= self.threshold:
            raise CollapseError(
                "Expected embeddings that differ from each other. Received: a "
                f"mean pairwise cosine of {cosine:.4f} over {len(self.probe)} "
                f"documents at step {step} (accepted: {self.threshold}). "
                "Lower the learning rate, warm up longer, raise the "
                "temperature, or start from trained weights."
            )
