"""Tests of the table of what fits where, and of its command line."""

from pathlib import Path

import pytest

from tf_samtone.models.model_sizes import find_model_size
from tf_samtone.trainers.memory_estimate import MemoryEstimate
from tf_samtone.trainers.memory_estimate_main import main
from tf_samtone.trainers.memory_table import largest_batch, memory_table
from tf_samtone.trainers.training_load import TrainingLoad

BASE = find_model_size("t5_1.1_base").encoder


def _total(batch_size, **load):
    load = TrainingLoad(batch_size=batch_size, **load)
    return MemoryEstimate.of(BASE, load).total


def test_the_largest_batch_fits_and_twice_as_many_do_not():
    batch = largest_batch(BASE, TrainingLoad(batch_size=1), 80)
    usable = 0.9 * 80 * 2**30
    assert _total(batch) <= usable < _total(2 * batch)


def test_the_largest_batch_is_that_of_one_device():
    load = TrainingLoad(batch_size=8, devices=8)
    assert largest_batch(BASE, load, 80) == pytest.approx(
        largest_batch(BASE, TrainingLoad(batch_size=1), 80), rel=0.51
    )


def test_an_encoder_that_does_not_fit_at_all_has_no_batch():
    assert largest_batch(BASE, TrainingLoad(batch_size=1), 0.5) == 0


def test_a_gradient_cache_starts_at_its_micro_batch():
    load = TrainingLoad(batch_size=32, gradient_cache_batch_size=32)
    assert largest_batch(BASE, load, 8) == 0
    assert largest_batch(BASE, load, 80) > 1024


def test_the_tables_have_a_row_per_size():
    table = memory_table(TrainingLoad(batch_size=8), {"box": 24.0})
    for name in ("small", "base", "large", "xl", "xxl"):
        assert table.count(f"| t5.1.1 {name} |") == 2
    assert "| encoder | box |" in table


def test_the_tables_hold_the_figures_of_the_formula():
    table = memory_table(TrainingLoad(batch_size=8), {"box": 24.0})
    total = f"{_total(8) / 2**30:.2f}"
    batch = largest_batch(BASE, TrainingLoad(batch_size=8), 24)
    rows = [x for x in table.splitlines() if x.startswith("| t5.1.1 base")]
    assert rows[0].endswith(f" | {total} |")
    assert rows[1] == f"| t5.1.1 base | {batch} |"


def test_the_command_line_prints_the_table(capsys):
    options = ["--batch_size=32", "--document_length=128", "--rematerialize"]
    assert main(["memory_estimate_main", *options]) == 0
    load = TrainingLoad(
        batch_size=32,
        document_length=128,
        rematerialize=True,
        dtype="mixed_bfloat16",
    )
    assert capsys.readouterr().out == memory_table(load) + "\n"


def test_a_load_that_cannot_be_is_one_line(capsys):
    assert main(["memory_estimate_main", "--batch_size=3", "--devices=2"]) == 1
    assert "devices=2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rematerialize": True},
        {"rematerialize": True, "gradient_cache_batch_size": 8},
    ],
    ids=["plain", "rematerialized", "gradient cache"],
)
def test_the_documentation_shows_what_the_command_prints(options):
    page = Path(__file__).resolve().parents[2] / "docs" / "memory.md"
    load = TrainingLoad(batch_size=64, dtype="mixed_bfloat16", **options)
    assert memory_table(load) in page.read_text()
