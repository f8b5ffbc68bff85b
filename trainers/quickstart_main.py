"""Command line: the quickstart, from nothing to answers."""

import sys
from collections.abc import Sequence
from typing import Any

from absl import flags

from tf_samtone._command_line import run_command
from tf_samtone.trainers.train_main import progress_shown

USAGE = """
Mines the Python packages of this machine, trains a small T5 dual encoder from
nothing, compares it with BM25, exports it, indexes it and answers questions.
Needs no download and no GPU.

Example:
  python -m tf_samtone.trainers.quickstart_main --output=quickstart_output
"""


def define_flags(values: flags.FlagValues) -> None:
    """Defines the flags of this command line."""
    flags.DEFINE_string(
        "recipe",
        "quickstart",
        "TOML file, or the name of an installed recipe.",
        flag_values=values,
    )
    flags.DEFINE_string(
        "output",
        "quickstart_output",
        "Folder for vocabulary, model, SavedModel, index and results.",
        flag_values=values,
    )
    flags.DEFINE_bool(
        "overwrite",
        False,
        "Replace results that are already in the output folder.",
        flag_values=values,
    )


def command(values: flags.FlagValues) -> None:
    """Runs the job and prints table, recall and answers."""
    # The one place where training and export meet.
    from tf_samtone.export import export_saved_model
    from tf_samtone.trainers.quickstart import quickstart
    from tf_samtone.trainers.recipe_file import read_recipe

    recipe = read_recipe(values.recipe)
    with progress_shown():
        results = quickstart(
            recipe,
            values.output,
            overwrite=values.overwrite,
            export=lambda model, folder: export_saved_model(
                model, folder, overwrite=values.overwrite
            ),
        )
    print(report(results))
    print(f"\nEverything is in {values.output}.")


def report(results: dict[str, Any]) -> str:
    """Formats results for a person."""
    from tf_samtone.trainers.runs import format_table

    texts = results["texts"]
    rows = {n: row["test"] for n, row in results["figures"].items()}
    order = ("chance", "untrained", "bm25", "trained", "hybrid")
    lines = [
        f"{texts['test_queries']} held-out docstrings, "
        f"{texts['documents']} functions to find them in:",
        "",
        format_table({n: rows[n] for n in order}, list(rows["trained"])),
        "",
        f"hybrid: {results['fusion']['weight']:.1f} * trained + "
        f"{1 - results['fusion']['weight']:.1f} * BM25, chosen on dev",
    ]
    for name, value in results["scann_recall"].items():
        lines.append(f"ScaNN {name} against exact search: {value:.4f}")
    for question, names in results["answers"].items():
        lines += ["", question, *(f"  {name}" for name in names)]
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the quickstart and returns its exit code."""
    return run_command(USAGE, define_flags, command, argv)


if __name__ == "__main__":
    sys.exit(main())
