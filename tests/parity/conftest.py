"""The reference, on the other side of a pipe; see reference_side.py."""

import importlib.util
import json
import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

_SIDE = pathlib.Path(__file__).with_name("reference_side.py")
_PACKAGES = ("torch", "transformers", "sentence_transformers")


class Reference:
    """Calls functions of reference_side.py in their own process."""

    def __init__(self, process: subprocess.Popen) -> None:
        self._process = process

    def call(self, function: str, **arguments: Any) -> dict[str, Any]:
        """Returns what the function returned, or raises its error."""
        call = {"function": function, "arguments": arguments}
        self._process.stdin.write(json.dumps(call) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process of the reference died")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        with np.load(answer["arrays"], allow_pickle=False) as arrays:
            return {**answer["rest"], **arrays}


@pytest.fixture(scope="session")
def reference(tmp_path_factory):
    """Start the reference once for all tests."""
    missing = [p for p in _PACKAGES if importlib.util.find_spec(p) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)} (the bench extra)")
    folder = tmp_path_factory.mktemp("reference")
    with (
        (folder / "stderr").open("w") as errors,
        subprocess.Popen(
            [sys.executable, str(_SIDE), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        yield Reference(process)
        process.stdin.close()
