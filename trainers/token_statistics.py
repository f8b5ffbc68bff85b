"""How long texts are in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tf_samtone.text import TextPreprocessor

# Longer texts count as this long.
_LONGEST = 4096


@dataclass(frozen=True, kw_only=True)
class TokenStatistics:
    """Lengths of texts, with `</s>`, before and after they are cut.

    Attributes:
        texts: int. How many were looked at.
        mean: float. Tokens of a text before it is cut.
        percentile_95: float. Tokens of a text that is longer than 95 % of
            them, before it is cut.
        share_cut: float in [0, 1]. Texts that lose tokens.
        mean_kept: float. Tokens of a text after it is cut.
    """

    texts: int
    mean: float
    percentile_95: float
    share_cut: float
    mean_kept: float

    @classmethod
    def of_texts(
        cls,
        texts: Sequence[str],
        preprocessor: TextPreprocessor,
        sample_size: int = 2000,
    ) -> "TokenStatistics":
        """Measures an even sample of texts.

        Args:
            texts: strings, at least one.
            preprocessor: `TextPreprocessor` that cuts them.
            sample_size: int. Texts to look at. Defaults to `2000`.
        """
        rows = np.linspace(0, len(texts) - 1, min(len(texts), sample_size))
        sample = [texts[row] for row in rows.astype(int)]
        kept = preprocessor.sequence_length
        longest = max(_LONGEST, kept)
        whole = TextPreprocessor(preprocessor.tokenizer, longest)
        lengths = whole.tokenize(sample).row_lengths().numpy()
        return cls(
            texts=len(sample),
            mean=float(lengths.mean()),
            percentile_95=float(np.percentile(lengths, 95)),
            share_cut=float((lengths > kept).mean()),
            mean_kept=float(np.minimum(lengths, kept).mean()),
        )
