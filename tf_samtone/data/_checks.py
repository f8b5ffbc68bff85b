"""Checks shared by the modules that build training batches."""

from collections.abc import Hashable, Sequence

from tf_samtone.errors import InvalidInputError


def check_int(name: str, value: object, least: int) -> None:
    """Refuses anything but an int of at least `least`."""
    is_int = isinstance(value, int) and not isinstance(value, bool)
    if not is_int or value < least:  # type: ignore[operator]
        raise InvalidInputError(
            f"Expected `{name}` to be an int of at least {least}. "
            f"Received: {name}={value!r}. Pass a whole number."
        )


def check_order(
    num_pairs: int,
    batch_size: int,
    group_ids: Sequence[Hashable] | None,
    last_batch: str,
) -> None:
    """Refuses an order of pairs that cannot be made."""
    check_int("batch_size", batch_size, 1)
    if last_batch not in ("drop", "pad"):
        raise InvalidInputError(
            "Expected `last_batch` to be 'drop' or 'pad'. Received: "
            f"last_batch={last_batch!r}. Pass one of them."
        )
    if batch_size > num_pairs:
        raise InvalidInputError(
            f"Expected at least `batch_size` pairs. Received: "
            f"batch_size={batch_size}, {num_pairs} pairs. Lower batch_size "
            "or give more pairs."
        )
    if group_ids is not None and len(group_ids) != num_pairs:
        raise InvalidInputError(
            "Expected one entry of `group_ids` per pair. Received: "
            f"{len(group_ids)} entries, {num_pairs} pairs. Pass a list of "
            "that length, or None."
        )
