"""Kills a training run at random moments until it has finished, many times.

    python random_kills.py FOLDER [--kills=20] [--seed=0]

Trains once without a break. Then trains the same recipe again and again, each
process killed at a random moment by SIGKILL (or, one in four, SIGTERM), and
resumed, until there were enough kills. Each finished run must have the bits of
the first: the last checkpoint (weights, optimizer, dropout, metrics), the
saved model, and the metric history. FOLDER is empty or absent. Takes some
minutes; prints one line per kill; the exit code is 1 if anything differs.
"""

import argparse
import json
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

from safetensors.numpy import load_file

PROGRAM = pathlib.Path(__file__).with_name("train_and_die.py")


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def start(folder: pathlib.Path, output: pathlib.Path, log) -> subprocess.Popen:
    """Start or resume a run in a new process."""
    command = [sys.executable, str(PROGRAM), str(folder), str(output)]
    return subprocess.Popen(
        [*command, "--kind=long", "--resume"],
        stdout=log,
        stderr=subprocess.STDOUT,
    )


def wait_for_steps(process, log: pathlib.Path, offset: int) -> None:
    """Wait until the process trains, or has ended."""
    while process.poll() is None:
        with log.open("rb") as file:
            file.seek(offset)
            if b": step " in file.read():
                return
        time.sleep(0.02)


def finish(folder: pathlib.Path, output: pathlib.Path) -> tuple[float, float]:
    """Train to the end; return the seconds in all and while training."""
    log = output.with_suffix(".log")
    started = time.monotonic()
    with log.open("ab") as file:
        offset = file.tell()
        process = start(folder, output, file)
        wait_for_steps(process, log, offset)
        trains = time.monotonic()
        code = process.wait()
    if code:
        raise SystemExit(f"exit code {code}; see {log}")
    now = time.monotonic()
    return now - started, now - trains


def checkpoints(output: pathlib.Path) -> list[str]:
    """Return the names of the checkpoints, oldest first."""
    folder = output / "checkpoints" / "samtone"
    return sorted(path.name for path in folder.glob("step-*"))


def wait_for_checkpoints(process, output: pathlib.Path, count: int) -> None:
    """Wait until that many were written, or the process has ended."""
    seen = set(checkpoints(output))
    goal = len(seen) + count
    while process.poll() is None and len(seen) < goal:
        seen.update(checkpoints(output))
        time.sleep(0.003)


def kill_once(folder, output, rng, seconds) -> str | None:
    """Start or resume a run, kill it, and say how; `None` if it finished."""
    log = output.with_suffix(".log")
    number = rng.choice([signal.SIGKILL] * 3 + [signal.SIGTERM])
    chance = rng.random()
    with log.open("ab") as file:
        offset = file.tell()
        process = start(folder, output, file)
        if chance < 0.6:
            # Most of the time goes to imports and tracing; this finds steps,
            # and checkpoints while they are being written.
            count = rng.randrange(25)
            wait_for_checkpoints(process, output, count)
            delay, where = rng.uniform(0, 0.1), f"after {count} checkpoints"
        elif chance < 0.8:
            wait_for_steps(process, log, offset)
            delay, where = rng.uniform(0, seconds[1]), "after the first step"
        else:
            delay, where = rng.uniform(0, seconds[0]), "after the start"
        # A timer, so that a process that ends by itself is not waited for.
        timer = threading.Timer(delay, process.send_signal, [number])
        timer.start()
        code = process.wait()
        timer.cancel()
    if code == 0:
        return None
    if code not in (-signal.SIGKILL, -signal.SIGTERM, 75):
        raise SystemExit(f"exit code {code}; see {log}")
    newest = (checkpoints(output) or ["no checkpoint"])[-1]
    return (
        f"{number.name} {delay:.3f} s {where}, exit code {code}, newest: "
        f"{newest}"
    )


def state_of(output: pathlib.Path) -> dict:
    """Return all that has to be equal, by name."""
    newest = max((output / "checkpoints" / "samtone").glob("step-*"))
    state = {}
    for file in sorted(newest.glob("*.safetensors")):
        for name, array in load_file(file).items():
            state[f"{file.stem}/{name}"] = array.tobytes()
    state["checkpoint"] = newest.name
    position = json.loads((newest / "state.json").read_text())
    results = json.loads((output / "results.json").read_text())
    manifest = json.loads((output / "model" / "manifest.json").read_text())
    for name, value in (
        ("position", position),
        ("results", results),
        ("fingerprint of model/", manifest["fields"]["fingerprint"]),
    ):
        state[name] = json.dumps(without_seconds(value))
    return state


def without_seconds(value):
    """Drop what a clock decided."""
    if isinstance(value, dict):
        return {
            key: without_seconds(item)
            for key, item in value.items()
            if key != "seconds"
        }
    if isinstance(value, list):
        return [without_seconds(item) for item in value]
    return value


def main() -> int:
    """Run everything; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(options.seed)
    seconds = finish(folder, folder / "uninterrupted")
    expected = state_of(folder / "uninterrupted")
    size = sum(len(v) for v in expected.values() if isinstance(v, bytes))
    say(
        f"uninterrupted: {seconds[0]:.1f} s, {seconds[1]:.1f} s of them in "
        f"training; {len(expected)} values, {size} bytes",
    )
    kills = runs = failures = 0
    while kills < options.kills:
        output = folder / f"run{runs}"
        while kills < options.kills:
            outcome = kill_once(folder, output, rng, seconds)
            if outcome is None:
                break
            kills += 1
            say(f"kill {kills}: {outcome}")
        else:
            finish(folder, output)
        actual = state_of(output)
        different = [
            name
            for name in {**expected, **actual}
            if expected.get(name) != actual.get(name)
        ]
        failures += bool(different)
        verdict = f"differs in {different}" if different else "equal bits"
        say(f"run {runs}: {verdict}")
        runs += 1
    say(f"{kills} kills, {runs} runs, {failures} of them different")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
