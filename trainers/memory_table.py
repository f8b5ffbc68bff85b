"""Which encoder with which batch fits where, as Markdown tables."""

import dataclasses
from collections.abc import Mapping

from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.model_sizes import MODEL_SIZES
from tf_samtone.trainers.memory_estimate import MemoryEstimate
from tf_samtone.trainers.training_load import TrainingLoad

__all__ = ["DEVICES", "format_gib", "largest_batch", "memory_table"]

GIB = 2**30
# GiB of one device.
DEVICES = {"TPU v5e": 16, "TPU v4": 32, "GPU 80 GB": 80, "TPU v5p": 95}
# For the runtime, the programs and what fragmentation loses.
_USABLE = 0.9
_LARGEST_BATCH = 2**16
_FAMILY = "t5_1.1_"


def format_gib(size: float) -> str:
    """Returns bytes as GiB with three digits."""
    gib = size / GIB
    return f"{gib:.2f}" if gib < 10 else f"{gib:.0f}"


def largest_batch(size: EncoderSize, load: TrainingLoad, gib: float) -> int:
    """Returns the largest power of two of pairs per device that fits.

    Args:
        size: `EncoderSize`.
        load: `TrainingLoad`; its batch is ignored.
        gib: float. Memory of a device, of which nine tenths are used.

    Returns:
        int; 0 if not even the smallest batch fits.
    """
    best = 0
    local = max(1, load.gradient_cache_batch_size)
    while local <= _LARGEST_BATCH:
        bigger = dataclasses.replace(load, batch_size=local * load.devices)
        if MemoryEstimate.of(size, bigger).total > _USABLE * gib * GIB:
            break
        best, local = local, 2 * local
    return best


def memory_table(
    load: TrainingLoad, devices: Mapping[str, float] | None = None
) -> str:
    """Formats what the sizes of T5 1.1 need, and what fits where.

    Args:
        load: `TrainingLoad`. The terms are for its batch.
        devices: name → GiB. Defaults to `DEVICES`.

    Returns:
        str, two Markdown tables: the terms in GiB for `load`'s batch, and the
        largest batch per device, a power of two.
    """
    devices = DEVICES if devices is None else devices
    terms = [field.name for field in dataclasses.fields(MemoryEstimate)]
    needs = [["encoder", "million weights", *terms, "total"]]
    fits = [["encoder", *devices]]
    family = {
        name.removeprefix(_FAMILY): named.encoder
        for name, named in MODEL_SIZES.items()
        if name.startswith(_FAMILY)
    }
    for name, size in family.items():
        estimate = MemoryEstimate.of(size, load)
        needs.append(
            [
                f"t5.1.1 {name}",
                f"{size.parameters / 1e6:,.0f}",
                *[format_gib(getattr(estimate, term)) for term in terms],
                format_gib(estimate.total),
            ]
        )
        batches = [largest_batch(size, load, gib) for gib in devices.values()]
        fits.append([f"t5.1.1 {name}", *[_batch(batch) for batch in batches]])
    return (
        f"GiB per device, {load.local_batch:,} pairs each:\n\n{_table(needs)}"
        f"\n\nLargest number of pairs per device:\n\n{_table(fits)}"
    )


def _batch(batch: int) -> str:
    if batch >= _LARGEST_BATCH:
        return f"{batch:,} or more"
    return f"{batch:,}" if batch else "none"


def _table(rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|---" + "|---:" * (len(rows[0]) - 1) + "|")
    return "\n".join(lines)
