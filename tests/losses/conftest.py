"""Every loss beside the formula that it is held against."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
import testing

from tf_samtone.losses import (
    GTELoss,
    InBatchSoftmaxLoss,
    PairLoss,
    SamToNeLoss,
    TripletLoss,
)

TEMPERATURE = 0.1
MARGIN = 0.3
# No tiles; tiles that do not divide the batch of 11 or its 22 hard negatives;
# tiles that do; one tile wider than all.
TILE_SIZES = [None, 4, 11, 64]


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A loss, its options, and its rows by the formula."""

    loss_class: type
    options: dict
    formula: Callable[[testing.ReferenceBatch], np.ndarray]

    def loss(self, **options):
        return self.loss_class(**{**self.options, **options})


def softmax_loss(loss_class, options, formula, **common):
    """Return a case whose reference shares the options of the softmax."""
    return Case(
        loss_class,
        {"temperature": TEMPERATURE, **options, **common},
        lambda batch: formula(
            lambda *blocks, **more: batch.softmax(
                *blocks, temperature=TEMPERATURE, **common, **more
            )
        ),
    )


def hinge_loss(negatives, *directions, **options):
    """Return a case with the blocks of each direction given."""

    def reduced(rows, num_valid):
        if negatives == "hardest":
            tops = [max(r, key=lambda h: h.real, default=0.0) for r in rows]
            return np.array(tops)
        sums = np.array([sum(row) for row in rows])
        if negatives == "mean":
            return sums / np.array([max(1, len(row)) for row in rows])
        active = sum(h != 0 for row in rows for h in row)
        return sums * num_valid / max(1, active)

    def formula(batch):
        return sum(
            reduced(batch.hinges(*blocks, margin=MARGIN), batch.is_valid.sum())
            for blocks in directions
        )

    return Case(
        TripletLoss,
        {"margin": MARGIN, "negatives": negatives, **options},
        formula,
    )


BOTH = {"same_tower": "both"}
OWN = {"hard_negatives": "own"}
CASES = {
    "in batch": softmax_loss(
        InBatchSoftmaxLoss, {}, lambda of: of("QP", "QN") + of("PQ")
    ),
    "in batch one way own": softmax_loss(
        InBatchSoftmaxLoss,
        {"bidirectional": False, **OWN},
        lambda of: of("QP", "QNown"),
    ),
    "samtone query mean": softmax_loss(
        SamToNeLoss,
        {"direction_reduction": "mean"},
        lambda of: (of("QP", "QQ", "QN") + of("PQ")) / 2,
    ),
    "samtone document": softmax_loss(
        SamToNeLoss,
        {"same_tower": "document"},
        lambda of: of("QP", "QN") + of("PQ", "PP"),
    ),
    "samtone both": softmax_loss(
        SamToNeLoss, BOTH, lambda of: of("QP", "QQ", "QN") + of("PQ", "PP")
    ),
    "margin inside": softmax_loss(
        SamToNeLoss,
        BOTH,
        lambda of: of("QP", "QQ", "QN") + of("PQ", "PP"),
        margin=0.1,
        margin_position="inside",
    ),
    "everything": softmax_loss(
        SamToNeLoss,
        {**BOTH, **OWN},
        lambda of: of("QP", "QQ", "QNown") + of("PQ", "PP"),
        margin=0.3,
        margin_position="outside",
        label_smoothing=0.1,
        same_tower_weight=0.5,
        # No similarity is near the limit, where the loss has a jump.
        score_margin=0.31,
    ),
    "gte": softmax_loss(
        GTELoss,
        {},
        lambda of: of("QP", "QQ", "QN", "PQ", "PP"),
        same_tower_weight=2.0,
    ),
    "gte twice": softmax_loss(
        GTELoss,
        {"count_positive_twice": True, **OWN},
        lambda of: of("QP", "QQ", "QNown", "PQ", "PP", num_positives=2),
    ),
    "pair": softmax_loss(
        PairLoss,
        {"alpha": 0.3},
        lambda of: 0.7 * (of("QP", "QN") + of("PQ")) + 0.3 * of("PP"),
        label_smoothing=0.2,
    ),
    "pair hard negatives": softmax_loss(
        PairLoss,
        {"form": "hard_negatives"},
        lambda of: 0.9 * of("QP", "QN") + 0.1 * of("PQ", "PN"),
    ),
}
HINGE_CASES = {
    "triplet hardest": hinge_loss("hardest", ["QP", "QQ", "QN"], ["PQ"]),
    "triplet mean": hinge_loss(
        "mean", ["QP", "QQ", "QN"], ["PQ", "PP"], same_tower="both"
    ),
    "triplet active": hinge_loss(
        "active", ["QP", "QN"], same_tower=None, bidirectional=False
    ),
}
ALL_CASES = {**CASES, **HINGE_CASES}


# One of each kind, for what does not depend on the options.
LOSSES = {
    "in batch": InBatchSoftmaxLoss(TEMPERATURE),
    "samtone": SamToNeLoss(TEMPERATURE, "both"),
    "samtone tiled": SamToNeLoss(TEMPERATURE, "both", tile_size=3),
    "gte": GTELoss(TEMPERATURE),
    "pair": PairLoss(TEMPERATURE, alpha=0.3),
    "triplet hardest": TripletLoss(MARGIN),
    "triplet mean": TripletLoss(MARGIN, negatives="mean", same_tower="both"),
}


@pytest.fixture(params=LOSSES.values(), ids=LOSSES)
def loss(request):
    """One loss of each kind."""
    return request.param


@pytest.fixture(params=ALL_CASES.values(), ids=ALL_CASES)
def case(request):
    """Every loss."""
    return request.param


@pytest.fixture(params=TILE_SIZES, ids=lambda size: f"tiles of {size}")
def tile_size(request):
    """Columns per tile."""
    return request.param


@pytest.fixture(params=CASES.values(), ids=CASES)
def softmax_case(request):
    """Every loss that knows tiles."""
    return request.param


@pytest.fixture(scope="session")
def full_batch():
    """Float64 arguments with all that `per_example` knows, 11 rows."""
    generator = np.random.default_rng(0)
    rows, k, dim = 11, 2, 4
    hard_negatives = testing.random_unit_vectors(3, rows, k, dim)
    return {
        "queries": testing.random_unit_vectors(1, rows, dim).astype("float64"),
        "documents": testing.random_unit_vectors(2, rows, dim).astype(
            "float64"
        ),
        "hard_negatives": hard_negatives.astype("float64"),
        "hard_negative_mask": generator.random([rows, k]) < 0.7,
        "query_ids": np.array([1, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10]),
        "document_ids": np.array([1, 2, 3, 4, 5, 6, 2, 7, 8, 8, 9]),
        "hard_negative_ids": generator.integers(1, 12, [rows, k]),
        "positives": generator.random([rows, rows]) < 0.1,
        "is_valid": np.arange(rows) != 9,
    }


@pytest.fixture(scope="session")
def expected(full_batch):
    """Find the rows of a case, and the gradients of their weighted sum.

    Row i weighs i + 1; the gradients are those of queries, documents and hard
    negatives.
    """
    found = {}
    arrays = ["queries", "documents", "hard_negatives"]

    def total(case, *values):
        batch = {**full_batch, **dict(zip(arrays, values, strict=True))}
        rows = case.formula(testing.ReferenceBatch(**batch))
        return rows @ np.arange(1, len(rows) + 1)

    def find(case):
        if case not in found:
            rows = case.formula(testing.ReferenceBatch(**full_batch))
            gradients = testing.complex_step_gradients(
                lambda *values: total(case, *values),
                *[full_batch[name] for name in arrays],
            )
            found[case] = rows, gradients
        return found[case]

    return find
