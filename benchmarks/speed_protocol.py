"""Lines of JSON between the benchmark and its two child processes.

A child does nothing between two commands, so that only one side computes at
a time.
"""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any


class Side:
    """One child process, kept alive, that answers commands.

    Args:
        module: file name of the child's program, beside this one.
        job: dict that the child gets as its first line.
        environment: variables of the child alone. Defaults to none.
    """

    def __init__(
        self, module: str, job: dict, environment: dict | None = None
    ) -> None:
        path = pathlib.Path(__file__).with_name(module)
        self._process = subprocess.Popen(
            [sys.executable, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TRANSFORMERS_VERBOSITY": "error",
                "HF_HUB_OFFLINE": "1",
                **os.environ,
                **(environment or {}),
            },
        )
        self.about = self.ask(job)

    def ask(self, command: dict) -> Any:
        """Sends one command and returns its answer."""
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(
                f"{self._process.args[-1]} ended with code "
                f"{self._process.wait()}; its message is above."
            )
        return json.loads(line)

    def close(self) -> None:
        """Ends the child."""
        self._process.stdin.close()
        self._process.wait()


def serve(start: Callable[[dict], Callable[[dict], Any]]) -> None:
    """Answers the parent's lines until it closes the pipe.

    Args:
        start: takes the job and returns the function that answers commands.
            It may return `(answer_function, about)`.
    """
    # Libraries print to stdout; answers keep it for themselves.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answer = None
    for line in sys.stdin:
        command = json.loads(line)
        if answer is None:
            answer, reply = start(command)
        else:
            reply = answer(command)
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
