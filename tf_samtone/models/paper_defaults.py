"""How the papers trained their dual encoders."""

from dataclasses import dataclass

__all__ = ["GTR", "SAMTONE", "PaperDefaults"]


@dataclass(frozen=True, kw_only=True)
class PaperDefaults:
    """The training of a paper, as far as it is stated.

    Attributes:
        query_length: int. Tokens of a query.
        document_length: int. Tokens of a document.
        batch_size: int. Pairs.
        stages: dict of stage to steps, in order.
        loss: str. Name of the loss in a recipe.
        learning_rate: float. Peak of Adafactor's, which falls to 0 in a
            straight line over each stage.
        temperature: float.
        lengths_from: str. Where the two lengths are from.
        reference: str.
    """

    query_length: int
    document_length: int
    batch_size: int
    stages: dict[str, int]
    loss: str
    learning_rate: float = 1e-3
    temperature: float = 0.01
    lengths_from: str
    reference: str


SAMTONE = PaperDefaults(
    query_length=64,
    document_length=256,
    batch_size=512,
    stages={"fine-tuning": 20_000},
    loss="samtone",
    lengths_from=(
        "t5x_retrieval's recipe for MS MARCO; the paper states no lengths"
    ),
    reference="Moiseev et al., 2023, https://arxiv.org/abs/2306.02516",
)
GTR = PaperDefaults(
    query_length=64,
    document_length=512,
    batch_size=2048,
    stages={"pre-training": 800_000, "fine-tuning": 20_000},
    loss="in_batch_softmax",
    lengths_from=(
        "the paper's evaluation on BEIR; it states no lengths for training"
    ),
    reference="Ni et al., 2021, https://arxiv.org/abs/2112.07899",
)
