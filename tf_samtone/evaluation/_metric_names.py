"""Metric strings such as `"nDCG@10"` and what they are in trec_eval."""

import dataclasses
import re

from tf_samtone.errors import InvalidInputError

__all__ = ["Metric", "parse_metric"]

# trec_eval's cut-off measures; MRR has none there and is cut by us.
_MEASURES = {
    "p": "P",
    "precision": "P",
    "r": "recall",
    "recall": "recall",
    "ndcg": "ndcg_cut",
    "map": "map_cut",
    "mrr": "recip_rank",
    "success": "success",
    "hit": "success",
}
_PATTERN = re.compile(r"([a-z]+)@([1-9][0-9]{0,8})")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Metric:
    """One metric with a cut-off.

    Attributes:
        name: str, as the caller wrote it.
        measure: str. Measure of trec_eval without the cut-off.
        cutoff: int. Ranks that are looked at.
    """

    name: str
    measure: str
    cutoff: int

    @property
    def request(self) -> str:
        """What to ask pytrec_eval for."""
        if self.measure == "recip_rank":
            return self.measure
        return f"{self.measure}.{self.cutoff}"

    @property
    def key(self) -> str:
        """What pytrec_eval calls the answer."""
        return self.request.replace(".", "_")


def parse_metric(name: str) -> Metric:
    """Read a metric string; case does not matter.

    Raises:
        InvalidInputError: for an unknown metric or a missing cut-off.
    """
    match = _PATTERN.fullmatch(name.lower()) if isinstance(name, str) else None
    if match is None or match[1] not in _MEASURES:
        raise InvalidInputError(
            "Expected a metric with a cut-off: P@k, R@k, MRR@k, nDCG@k, "
            f"MAP@k or success@k. Received: metric={name!r}. Write for "
            "example 'nDCG@10'."
        )
    return Metric(name=name, measure=_MEASURES[match[1]], cutoff=int(match[2]))
