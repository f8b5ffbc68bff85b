"""Memory and time of a training step with a gradient cache.

    python benchmarks/gradient_cache.py
    python benchmarks/gradient_cache.py --large 256 --time_batch 64

Memory: the peak of a process that trains on a batch of one micro-batch, and of
one that trains on a batch of many with the cache. Time: the plain step and the
cached one in alternation, in one process, at a batch where both fit. The
encoder of t5.1.1-small with random weights, queries of 32 tokens and documents
of 128, all of them real.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import step_memory

PROGRAM = pathlib.Path(step_memory.__file__)


def main() -> None:
    """Prints a line on memory and one on time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--micro", type=int, default=32)
    parser.add_argument("--large", type=int, default=1024)
    parser.add_argument("--time_batch", type=int, default=128)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--size", default="small")
    options = parser.parse_args()
    print(f"{options.size}, {options.dtype}, {os.cpu_count()} cores")
    plain = _peak(options, options.micro)
    cached = _peak(options, options.large, options.micro)
    print(
        f"peak at {options.micro} pairs {plain:.0f} MiB; at {options.large} "
        f"in micro-batches of {options.micro} {cached:.0f} MiB "
        f"({cached / plain:.2f}x)",
        flush=True,
    )
    plain_s, cached_s = _times(options)
    ratios = [b / a for a, b in zip(plain_s, cached_s, strict=True)]
    print(
        f"step at {options.time_batch} pairs: plain "
        f"{statistics.median(plain_s):.2f} s, cached "
        f"{statistics.median(cached_s):.2f} s; ratio "
        f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to "
        f"{max(ratios):.2f}, {options.repeats} in alternation)"
    )


def _peak(options: argparse.Namespace, batch: int, micro: int = 0) -> float:
    """Returns MiB of a process of its own, less what TensorFlow takes."""
    command = [
        sys.executable,
        str(PROGRAM),
        f"--one={batch}",
        f"--dtype={options.dtype}",
        f"--size={options.size}",
        f"--gradient_cache_batch_size={micro}",
        "--steps=1",
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout.splitlines()[-1])["step"]


def _times(options: argparse.Namespace) -> tuple[list[float], list[float]]:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    from tf_samtone.losses import SamToNeLoss

    options.dropout, options.rematerialize = 0.0, False
    batches = iter(step_memory.dataset(options.time_batch))
    functions = []
    for micro in (None, options.micro):
        _, model = step_memory.build(options)
        model.compile(
            optimizer=step_memory.optimizer("adafactor"),
            loss=SamToNeLoss(),
            gradient_cache_batch_size=micro,
        )
        model.optimizer.build(model.trainable_variables)
        function = model.make_train_function() or model.train_function
        # Traced, and the allocator has seen its sizes.
        function(batches)
        functions.append(function)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(options.repeats):
        for function, seconds in zip(functions, times, strict=True):
            started = time.perf_counter()
            float(function(batches)["loss"])
            seconds.append(time.perf_counter() - started)
    return times


if __name__ == "__main__":
    main()
