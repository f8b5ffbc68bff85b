"""Helpers that several tests share."""

import numpy as np

# The fixture of three questions, three answers and three hard negatives, as
# angles of 2-D unit vectors, at temperature 0.05.
QUERY_DEGREES = (0, 40, 100)
DOCUMENT_DEGREES = (15, 70, 85)
HARD_NEGATIVE_DEGREES = (60, 120, 170)


def unit_vectors_at(degrees) -> np.ndarray:
    """Return float64 `[n, 2]`, unit vectors at the angles."""
    radians = np.radians(np.asarray(degrees, np.float64))
    return np.stack([np.cos(radians), np.sin(radians)], axis=-1)


def random_unit_vectors(seed: int, *shape: int) -> np.ndarray:
    """Return float32 `shape`, random vectors of length 1."""
    x = np.random.default_rng(seed).normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


class ReferenceBatch:
    """A batch and its losses in float64, row by row, from the formulas.

    Lists of terms in place of masks and a plain log-sum-exp, so that it shares
    no idea with the code under test. Complex embeddings give the losses of
    complex arguments, for `complex_step_gradients`.

    Blocks have the names of the notation: for row i, `"QP"` holds the
    similarities of query i to documents, `"QQ"` to queries, `"QN"` to all hard
    negatives and `"QNown"` to its own; `"PQ"`, `"PP"`, `"PN"`, `"PNown"` and
    `"PNother"` those of document i. The positive belongs to none of them.
    """

    def __init__(
        self,
        queries,
        documents,
        hard_negatives=None,
        hard_negative_mask=None,
        query_ids=None,
        document_ids=None,
        hard_negative_ids=None,
        positives=None,
        is_valid=None,
    ):
        self.queries, self.documents = _double(queries), _double(documents)
        size = len(self.queries)
        self.is_valid = np.ones(size, bool) if is_valid is None else is_valid
        self.positives = positives
        self.kinds = [k for k in (query_ids, document_ids) if k is not None]
        self.document_ids = document_ids
        self.hard_negatives = []
        if hard_negatives is not None:
            hard_negatives = _double(hard_negatives)
            mask = hard_negative_mask
            if mask is None:
                mask = np.ones(hard_negatives.shape[:2])
            for j, k in np.argwhere(np.asarray(mask, bool)).tolist():
                name = None
                if hard_negative_ids is not None:
                    name = hard_negative_ids[j][k]
                if self.is_valid[j]:
                    entry = (j, name, hard_negatives[j, k])
                    self.hard_negatives.append(entry)

    def _others(self, i):
        return [
            j
            for j in np.flatnonzero(self.is_valid).tolist()
            if j != i
            and all(ids[i] != ids[j] for ids in self.kinds)
            and (self.positives is None or not self.positives[i][j])
        ]

    def _columns(self, block, i):
        kind = block[1:]
        if kind in ("Q", "P"):
            tower = self.queries if kind == "Q" else self.documents
            return [tower[j] for j in self._others(i)]
        wanted = {
            "N": lambda j: True,
            "Nown": lambda j: j == i,
            "Nother": lambda j: j != i,
        }[kind]
        return [
            vector
            for j, name, vector in self.hard_negatives
            if wanted(j) and (name is None or name != self.document_ids[i])
        ]

    def negatives(self, i, blocks, score_margin=None):
        """Return lists of similarities, one per block, and the positive's."""
        positive = self.queries[i] @ self.documents[i]
        lists = []
        for block in blocks:
            side = self.queries if block[0] == "Q" else self.documents
            found = [side[i] @ column for column in self._columns(block, i)]
            if score_margin is not None:
                limit = positive.real + score_margin
                found = [x for x in found if x.real <= limit]
            lists.append(found)
        return lists, positive

    def softmax(self, *blocks, temperature, num_positives=1, **options):
        """Return float64 `[batch]`, L(blocks) of each row; 0 for padding.

        Args:
            *blocks: names of blocks.
            temperature: float.
            num_positives: int. How often the positive is in the denominator.
            **options: `margin`, `margin_position`, `label_smoothing`,
                `same_tower_weight` and `score_margin`, as of the losses.
        """
        rows = []
        for i in range(len(self.queries)):
            if not self.is_valid[i]:
                rows.append(0.0)
                continue
            lists, positive = self.negatives(
                i, blocks, options.get("score_margin")
            )
            margin = options.get("margin", 0.0)
            if options.get("margin_position") == "inside":
                margin /= temperature
            first = positive / temperature - margin
            logits = []
            for block, found in zip(blocks, lists, strict=True):
                weight = 1.0
                if block in ("QQ", "PP"):
                    weight = options.get("same_tower_weight", 1.0)
                logits += [x / temperature + np.log(weight) for x in found]
            smoothing = options.get("label_smoothing", 0.0)
            rows.append(_cross_entropy(first, logits, num_positives, smoothing))
        return np.array(rows)

    def hinges(self, *blocks, margin, score_margin=None):
        """Return a list per row of max(0, margin - s(q, p) + x)."""
        rows = []
        for i in range(len(self.queries)):
            lists, positive = self.negatives(i, blocks, score_margin)
            if not self.is_valid[i]:
                lists = []
            values = [margin - positive + x for found in lists for x in found]
            rows.append([h if h.real > 0 else 0.0 for h in values])
        return rows


def _double(values) -> np.ndarray:
    values = np.asarray(values)
    return values.astype(np.result_type(values, np.float64))


def _cross_entropy(first, logits, num_positives, smoothing):
    if not logits and num_positives == 1:
        return 0.0
    every = np.array([first] * num_positives + logits)
    highest = every.real.max()
    normaliser = highest + np.log(np.exp(every - highest).sum())
    if not smoothing:
        return normaliser - first
    share = smoothing / len(logits)
    entropy = -(1 - smoothing) * np.log(1 - smoothing)
    entropy -= smoothing * np.log(share)
    rest = share * sum(normaliser - x for x in logits)
    return (1 - smoothing) * (normaliser - first) + rest - entropy


def complex_step_gradients(function, *arrays) -> list[np.ndarray]:
    """Return the gradients of a real analytic function, exact to rounding.

    Args:
        function: takes arrays like `arrays`, real or complex; returns a scalar.
        *arrays: float arrays.

    Reference:
        Squire and Trapp, 1998, Using Complex Variables to Estimate Derivatives
        of Real Functions, https://doi.org/10.1137/S003614459631241X
    """
    arrays = [np.asarray(x, np.complex128) for x in arrays]
    gradients = [np.zeros(x.shape) for x in arrays]
    for array, gradient in zip(arrays, gradients, strict=True):
        for index in np.ndindex(array.shape):
            kept = array[index]
            array[index] = kept + 1e-30j
            gradient[index] = function(*arrays).imag / 1e-30
            array[index] = kept
    return gradients


def central_differences(function, x, step=3e-4) -> np.ndarray:
    """Return float64 gradient of a scalar function of one array.

    Of fourth order: the error is about step^4 / 30 times a fifth derivative.
    """
    x = np.array(x, np.float64)
    gradient = np.zeros_like(x)

    def at(index, distance):
        moved = x.copy()
        moved[index] += distance * step
        return function(moved)

    for index in np.ndindex(x.shape):
        near = at(index, 1) - at(index, -1)
        far = at(index, 2) - at(index, -2)
        gradient[index] = (8 * near - far) / (12 * step)
    return gradient


def relative_error(actual, expected) -> float:
    """Return the largest difference over the largest expected size."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    return np.abs(actual - expected).max() / np.abs(expected).max()
