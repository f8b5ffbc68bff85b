"""What benchmarks/tpu_compile.py does without JAX and libtpu."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "benchmarks" / "tpu_compile.py"
JOB = {
    "size": "tiny",
    "variant": "plain",
    "batch": 4,
    "query_length": 8,
    "document_length": 16,
    "dropout": 0.1,
    "packed_share": 0.5,
    "micro_batch": 2,
    "layers": None,
}


@pytest.fixture
def program(monkeypatch):
    # Where it finds its neighbour.
    monkeypatch.syspath_prepend(PROGRAM.parent)
    spec = importlib.util.spec_from_file_location("tpu_compile", PROGRAM)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Hidden width, feed-forward width, heads, layers.
    monkeypatch.setitem(module.SIZES, "tiny", (16, 32, 2, 1))
    monkeypatch.setattr(module, "VOCABULARY_SIZE", 64)
    monkeypatch.setattr(module, "PROJECTION_DIM", 8)
    return module


def test_missing_packages_are_named_with_the_command_to_install_them(
    program, monkeypatch, capsys
):
    monkeypatch.setattr(sys, "argv", ["tpu_compile.py"])
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: None)
    program.main()
    jax, libtpu = program.PACKAGES.values()
    assert f'pip install "{jax}" "{libtpu}"' in capsys.readouterr().out


def test_unknown_size_is_refused_with_the_known_ones():
    done = subprocess.run(
        [sys.executable, PROGRAM, "--sizes=huge"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "among small, base, large. Received: huge" in done.stderr


@pytest.mark.parametrize(
    ("variant", "encoder_passes", "encoder_share"),
    [("plain", 3, 1), ("packed", 3, 0.5), ("rematerialize", 4, 1)],
)
def test_formula_counts_each_matrix_product(
    program, variant, encoder_passes, encoder_share
):
    # A multiplication and an addition per product of two numbers.
    tokens = 4 * (8 + 16)
    projections = 2 * tokens * (4 * 16 * 128 + 3 * 16 * 32)
    attention = 2 * 2 * 4 * (8 * 8 + 16 * 16) * 128
    encoder = (projections + attention) * encoder_passes * encoder_share
    head = 2 * 2 * 4 * 16 * 8
    loss = 3 * 2 * 4 * 4 * 8
    expected = encoder + 3 * (head + loss)
    assert program._formula_flops({**JOB, "variant": variant}) == expected


@pytest.mark.parametrize(
    "variant", ["plain", "packed", "rematerialize", "gradient_cache"]
)
def test_training_step_has_static_shapes_and_no_calls_out_of_xla(
    program, variant
):
    hlo = program._training_step_hlo({**JOB, "variant": variant})
    assert b"rng-bit-generator" in hlo
    assert b"custom-call" not in hlo
