"""A published size of a dual encoder."""

from dataclasses import dataclass

from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.paper_defaults import PaperDefaults


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Encoder, projection, and how the paper trained a model of this size.

    Attributes:
        encoder: `EncoderSize`.
        projection_dim: int. Width of the embeddings. Defaults to `768`, that
            of GTR, Sentence-T5 and t5x_retrieval at every size.
        paper: `PaperDefaults` or `None`, where no paper on dual encoders used
            this size.
    """

    encoder: EncoderSize
    projection_dim: int = 768
    paper: PaperDefaults | None = None

    @property
    def parameters(self) -> int:
        """Number of weights of one tower with its projection."""
        projection = self.encoder.hidden_dim * self.projection_dim
        return self.encoder.parameters + projection
