"""Command line: what training takes in memory, and what fits where."""

import sys
from collections.abc import Sequence

from absl import flags

from tf_samtone._command_line import run_command

USAGE = """
Prints an estimate of the memory of one training step for the sizes of T5 1.1,
and the largest batch per device (a power of two) that fits. An estimate by a
formula; nothing is run.

Example:
  python -m tf_samtone.trainers.memory_estimate_main --batch_size=1024 \\
      --devices=8 --dtype=mixed_bfloat16 --rematerialize
"""


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    integers = (
        ("batch_size", 64, 1, "Pairs of a step over all devices."),
        ("devices", 1, 1, "Devices that share a batch."),
        ("query_length", 64, 1, "Tokens per query."),
        ("document_length", 256, 1, "Tokens per document."),
        ("hard_negatives", 0, 0, "Documents per pair besides its own."),
        ("projection_dim", 768, 1, "Width of the embeddings."),
        ("gradient_cache_batch_size", 0, 0, "Pairs embedded at once; 0: all."),
    )
    for name, default, least, text in integers:
        flags.DEFINE_integer(
            name, default, text, lower_bound=least, flag_values=values
        )
    flags.DEFINE_enum(
        "dtype",
        "mixed_bfloat16",
        ["float32", "mixed_bfloat16"],
        "Compute dtype; weights are float32 in any case.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "optimizer",
        "adafactor",
        ["adafactor", "adamw"],
        "Optimizer.",
        flag_values=values,
    )
    flags.DEFINE_enum(
        "architecture",
        "sde",
        ["sde", "ade", "ade-spl", "ade-ste", "ade-fte"],
        "How the towers share weights.",
        flag_values=values,
    )
    for name, text in (
        ("dropout", "Dropout is above 0."),
        ("clips", "Gradients are clipped."),
        ("rematerialize", "Layers are computed anew in the backward pass."),
    ):
        flags.DEFINE_bool(name, False, text, flag_values=values)


def command(values: flags.FlagValues) -> None:
    """Prints the table."""
    import dataclasses

    from tf_samtone.trainers.memory_table import memory_table
    from tf_samtone.trainers.training_load import TrainingLoad

    given = values.flag_values_dict()
    names = [field.name for field in dataclasses.fields(TrainingLoad)]
    load = TrainingLoad(**{n: given[n] for n in names if n in given})
    print(memory_table(load))


def main(argv: Sequence[str] | None = None) -> int:
    """Prints the table and returns the exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
