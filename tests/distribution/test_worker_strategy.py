"""Two workers on this machine against one process."""

import json
import pathlib
import socket
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PROGRAM = ROOT / "tests" / "programs" / "fit_under_worker_strategy.py"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """What the program wrote: by two workers, and alone."""
    folder = tmp_path_factory.mktemp("workers")
    workers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    environment = {
        "PYTHONPATH": str(ROOT),
        "PATH": "",
        "HOME": str(folder),
        "CUDA_VISIBLE_DEVICES": "",
    }
    processes = {}
    for name in (0, 1, "alone"):
        extra = {}
        if name != "alone":
            task = {"type": "worker", "index": name}
            config = {"cluster": {"worker": workers}, "task": task}
            extra["TF_CONFIG"] = json.dumps(config)
        processes[name] = subprocess.Popen(
            [sys.executable, PROGRAM, str(folder / f"{name}.npz")],
            cwd=ROOT,
            env=environment | extra,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    try:
        results = {}
        for name, process in processes.items():
            _, errors = process.communicate(timeout=240)
            assert process.returncode == 0, errors
            path = folder / f"{name}.npz"
            results[name] = dict(np.load(path, allow_pickle=False))
        return results
    finally:
        # One worker waits for ever for another that failed.
        for process in processes.values():
            process.kill()


def test_both_workers_end_with_the_same_weights(fitted):
    np.testing.assert_array_equal(fitted[0]["weights"], fitted[1]["weights"])


@pytest.mark.parametrize("worker", [0, 1])
def test_the_weights_are_those_of_one_process(fitted, worker):
    np.testing.assert_allclose(
        fitted[worker]["weights"], fitted["alone"]["weights"], atol=1e-6
    )


@pytest.mark.parametrize("worker", [0, 1])
@pytest.mark.parametrize("name", ["loss", "val_loss"])
def test_the_reported_losses_are_those_of_one_process(fitted, worker, name):
    np.testing.assert_allclose(
        fitted[worker][name], fitted["alone"][name], rtol=1e-5
    )
