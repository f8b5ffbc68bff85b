"""Batches without copies: the batches, and what cannot be had."""

import numpy as np
import pytest

from tf_samtone.data._unique_batches import UniqueBatches
from tf_samtone.errors import InvalidInputError


def texts(num_pairs, num_queries, num_documents, seed):
    rng = np.random.default_rng(seed)
    return (
        rng.integers(0, num_queries, num_pairs),
        rng.integers(0, num_documents, num_pairs),
    )


def regular(num_texts, copies, seed):
    """Every text in equally many pairs, at random: the hardest case."""
    rng = np.random.default_rng(seed)
    return tuple(
        rng.permutation(np.repeat(np.arange(num_texts), copies))
        for _ in range(2)
    )


def a_circle():
    """Four pairs of two queries and two documents."""
    return np.array([0, 1, 1, 0]), np.array([0, 0, 1, 1])


def num_copies(ids, batches):
    return sum(len(batch) - len(np.unique(ids[batch])) for batch in batches)


CASES = {
    "few_copies": (texts(400, 300, 200, 0), 16, 25),
    "no_copies": ((np.arange(50), np.arange(50)), 8, 6),
    # A text in every batch: 12 texts, 12 batches, all of them full.
    "every_text_in_every_batch": (regular(12, 12, 1), 12, 12),
    "five_of_six_batches": (regular(24, 10, 2), 20, 12),
    "many_full_batches": (regular(96, 72, 3), 72, 96),
    "circle": (a_circle(), 2, 2),
    # 50 copies of one pair, 50 others: 5 batches hold one copy each, for
    # 5 + 50 pairs fill 5 batches of 10 and no sixth.
    "one_pair_is_half": (
        (np.minimum(np.arange(100), 50), np.minimum(np.arange(100), 50)),
        10,
        5,
    ),
    # 60 copies of one query and 40 others, all with other documents: ten
    # batches of five take 10 + 40 pairs.
    "one_query_is_most": (
        (np.minimum(np.arange(100), 40), np.arange(100)),
        5,
        10,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_no_batch_holds_a_copy(case):
    (queries, documents), batch_size, _ = CASES[case]
    order = np.random.default_rng(7).permutation(len(queries))

    full, _ = UniqueBatches(queries, documents, batch_size).cut(order)

    assert num_copies(queries, full) == num_copies(documents, full) == 0


@pytest.mark.parametrize("case", CASES)
def test_batches_are_full_and_as_many_as_can_be(case):
    (queries, documents), batch_size, count = CASES[case]
    order = np.random.default_rng(7).permutation(len(queries))

    full, left_out = UniqueBatches(queries, documents, batch_size).cut(order)

    assert full.shape == (count, batch_size)
    every = np.concatenate([full.ravel(), left_out])
    assert sorted(every) == list(range(len(queries)))


@pytest.mark.parametrize("seed", range(30))
def test_any_feasible_data_is_cut(seed):
    rng = np.random.default_rng(seed)
    num_pairs = int(rng.integers(20, 60))
    queries, documents = texts(num_pairs, 18, 15, seed)
    unique = UniqueBatches(queries, documents, int(rng.integers(2, 6)))

    full, _ = unique.cut(rng.permutation(num_pairs))

    assert len(full) == unique.num_batches
    assert num_copies(queries, full) == num_copies(documents, full) == 0


def test_an_order_without_copies_is_cut_as_it_is():
    order = np.random.default_rng(0).permutation(50)

    full, left_out = UniqueBatches(np.arange(50), np.arange(50), 8).cut(order)

    np.testing.assert_array_equal(full.ravel(), order[:48])
    np.testing.assert_array_equal(left_out, order[48:])


def test_only_the_copy_moves_to_the_next_batch_with_room():
    # Batches of three; row 1 repeats the query of row 0, row 3 that of row 4.
    queries = np.array([0, 0, 1, 2, 2, 3])

    full, _ = UniqueBatches(queries, np.arange(6), 3).cut(np.arange(6))

    assert full.tolist() == [[0, 2, 4], [1, 3, 5]]


def test_the_same_order_gives_the_same_batches():
    queries, documents = texts(400, 300, 200, 0)
    order = np.random.default_rng(1).permutation(400)

    once = UniqueBatches(queries, documents, 16).cut(order)[0]
    again = UniqueBatches(queries, documents, 16).cut(order)[0]

    np.testing.assert_array_equal(once, again)


@pytest.mark.parametrize(
    ("queries", "documents", "commonest"),
    [
        ([0, 1, 2, 3], [0, 0, 1, 1], r"documents\[0\]"),
        ([4, 5, 5, 5], [0, 1, 2, 3], r"queries\[1\]"),
    ],
    ids=["documents", "queries"],
)
def test_too_few_distinct_texts_are_refused(queries, documents, commonest):
    with pytest.raises(InvalidInputError, match=commonest) as caught:
        UniqueBatches(np.array(queries), np.array(documents), 3)

    assert "batch_size=3" in str(caught.value)
    assert "unique_texts=False" in str(caught.value)
