"""What the README shows does what it says."""

import configparser
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
TRAINING = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")
FIXTURES = ROOT / "tests" / "data_files"


def _entry_points() -> dict[str, str]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    lines = config["options.entry_points"]["console_scripts"].split("\n")
    return dict(line.split(" = ") for line in lines if line)


def _commands() -> dict[str, set[str]]:
    """Finds the command lines of the README, with the flags they use."""
    lines = re.findall(r"^    (samtone-\w+)((?:.*\\\n)*.*)", README, re.M)
    return {name: set(re.findall(r"--(\w+)", rest)) for name, rest in lines}


def _run(program: str, *arguments: str, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error::SyntaxWarning", "-c", program]
        + list(arguments),
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("text", "count", "printed"),
    [(README, 3, "(1, 768)"), (TRAINING, 1, "3")],
    ids=["README", "training"],
)
def test_python_blocks_run_in_order(tmp_path, text, count, printed):
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    preset = tmp_path / "t5_small"
    shutil.copytree(FIXTURES / "t5_tiny_gated_gelu", preset)
    shutil.copy(FIXTURES / "tiny.spm", preset / "spiece.model")

    output = _run("\n".join(blocks), cwd=tmp_path)

    assert len(blocks) == count
    assert printed in output


@pytest.mark.parametrize("name", _commands())
def test_documented_commands_exist_and_know_their_flags(name, tmp_path):
    module, function = _entry_points()[name].split(":")
    program = f"import sys, {module} as m; sys.exit(m.{function}())"

    output = _run(program, "--help", cwd=tmp_path)

    assert _commands()[name] <= set(re.findall(r"--(\w+)", output))


def test_every_entry_point_is_documented():
    assert set(_commands()) == set(_entry_points())


def test_readme_is_at_most_two_hundred_lines():
    assert len(README.splitlines()) <= 200
