"""How a training dataset lays tokens out, checked."""

import dataclasses
from collections.abc import Mapping, Sequence

from tf_samtone.data._checks import check_int
from tf_samtone.data._token_layout import (
    BucketLayout,
    PaddedLayout,
    RowLayout,
    TokenLayout,
)
from tf_samtone.errors import InvalidInputError
from tf_samtone.text import TextPreprocessor

_SIDES = ("queries", "documents", "hard_negatives")


@dataclasses.dataclass(frozen=True, kw_only=True)
class LayoutOptions:
    """The arguments of `training_dataset` that shape its features.

    Attributes:
        query_buckets: ascending ints or `None`.
        document_buckets: ascending ints or `None`.
        packing: `"rows"` or `None`.
        packing_groups: int.
        query_row_length: int or `None`.
        document_row_length: int or `None`.
        row_multiple: int.
        rows: dict of int or `None`.
    """

    query_buckets: Sequence[int] | None
    document_buckets: Sequence[int] | None
    packing: str | None
    packing_groups: int
    query_row_length: int | None
    document_row_length: int | None
    row_multiple: int
    rows: Mapping[str, int] | None

    def __post_init__(self) -> None:
        if self.packing not in (None, "rows"):
            raise InvalidInputError(
                "Expected `packing` to be 'rows' or None. Received: "
                f"packing={self.packing!r}. Pass one of them."
            )
        check_int("packing_groups", self.packing_groups, 1)
        check_int("row_multiple", self.row_multiple, 1)
        # Without packing, groups and multiples have nothing to change.
        unused = (
            ("query_row_length", "document_row_length", "rows")
            if self.packing is None
            else ("query_buckets", "document_buckets")
        )
        for name in unused:
            value = getattr(self, name)
            if value is not None:
                raise InvalidInputError(
                    f"Expected no `{name}` with packing={self.packing!r}. "
                    f"Received: {name}={value!r}. Buckets are for padded "
                    "batches, row lengths and rows for packing='rows'."
                )

    def layouts(
        self, preprocessors: dict[str, TextPreprocessor], batch_size: int
    ) -> dict[str, TokenLayout]:
        """Makes the layouts of all three kinds of text.

        Args:
            preprocessors: dict with `"queries"` and `"documents"`.
            batch_size: int.

        Returns:
            dict with `"queries"`, `"documents"` and `"hard_negatives"`.

        Raises:
            InvalidInputError: if a length or number does not fit the texts
                or the batch.
        """
        by_side = {
            **preprocessors,
            "hard_negatives": preprocessors["documents"],
        }
        if self.packing is None:
            return {side: self._padded(side, by_side[side]) for side in _SIDES}
        self._check_groups(batch_size)
        self._check_rows()
        return {side: self._packed(side, by_side[side]) for side in _SIDES}

    def _padded(self, side: str, preprocessor: TextPreprocessor) -> TokenLayout:
        name = "query_buckets" if side == "queries" else "document_buckets"
        buckets = getattr(self, name)
        if buckets is None:
            return PaddedLayout(preprocessor)
        return BucketLayout(preprocessor, buckets, name)

    def _packed(self, side: str, preprocessor: TextPreprocessor) -> TokenLayout:
        longest = preprocessor.sequence_length
        if side == "queries":
            name, row_length = "query_row_length", self.query_row_length
            default = 2 * longest
        else:
            name, row_length = "document_row_length", self.document_row_length
            default = longest
        if row_length is None:
            row_length = default
        check_int(name, row_length, longest)
        return RowLayout(
            name=side,
            row_length=row_length,
            groups=self.packing_groups,
            row_multiple=self.row_multiple,
            rows=None if self.rows is None else self.rows.get(side),
            pad_id=int(preprocessor.tokenizer.pad_token_id),
        )

    def _check_groups(self, batch_size: int) -> None:
        if batch_size % self.packing_groups:
            raise InvalidInputError(
                "Expected `packing_groups` to divide `batch_size`. Received: "
                f"packing_groups={self.packing_groups}, "
                f"batch_size={batch_size}. Change either."
            )

    def _check_rows(self) -> None:
        if self.rows is None:
            return
        unknown = sorted(set(self.rows) - set(_SIDES))
        if unknown:
            raise InvalidInputError(
                f"Expected `rows` to have keys among {list(_SIDES)}. "
                f"Received: {unknown}. Leave out what is not fixed."
            )
        for side, number in self.rows.items():
            check_int(f"rows[{side!r}]", number, 1)
