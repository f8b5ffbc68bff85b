"""Peak memory and time of the tiled loss against the dense one.

    python benchmarks/loss_memory.py                     # up to 32,768 rows
    python benchmarks/loss_memory.py --batches 1024,4096
    python benchmarks/loss_memory.py --sentence_transformers

Each measurement runs in a process of its own, because a peak of memory cannot
be taken back. Times of the two sides are taken in alternation in one process.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

DIM = 768
# Larger than the loss ever makes them: the dense side would need 25 GB.
LARGEST_DENSE = 8192


def main() -> None:
    """Prints one line per batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", default="1024,2048,4096,8192,16384,32768")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tile_size", type=int, default=256)
    parser.add_argument("--sentence_transformers", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(json.loads(options.one))))
        return
    print(
        "forward and backward of SamToNeLoss (query side, bidirectional), "
        f"float32, dim {DIM}, tiles of {options.tile_size}; "
        f"{os.cpu_count()} cores"
    )
    previous = None
    for batch in map(int, options.batches.split(",")):
        job = {"batch": batch, "tile_size": options.tile_size}
        base = _child({**job, "kind": "base"})["peak_mib"]
        alone = _child({**job, "kind": "tiled"})
        tiled = alone["peak_mib"] - base
        line = f"batch {batch:6d}: tiled {tiled:7.0f} MiB above the embeddings"
        if previous:
            line += f" ({tiled / previous:.2f}x)"
        previous = tiled
        if batch <= LARGEST_DENSE:
            dense = _child({**job, "kind": "dense"})["peak_mib"] - base
            line += f", dense {dense:7.0f} MiB"
            repeats = {**job, "repeats": options.repeats}
            line += _times(_child({**repeats, "kind": "time"}))
        else:
            # Minutes a step: one, with its tracing, is measured enough.
            line += f", tiled {alone['seconds']:.1f} s"
        print(line, flush=True)
        if options.sentence_transformers and batch <= LARGEST_DENSE:
            # The nearest loss that it can express: one direction, one block.
            ours = _child({**repeats, "kind": "time_plain"})
            peer = _child({**repeats, "kind": "peer"})
            print("    one plain direction" + _times({**ours, **peer}))


def _times(figures: dict) -> str:
    """Formats medians, their ratio and the share of the matmul rate."""
    text = ""
    for name in ("tiled", "dense", "plain", "peer"):
        if name in figures:
            seconds = figures[name]
            middle = statistics.median(seconds)
            spread = max(seconds) / min(seconds)
            text += f", {name} {middle:.3f} s (spread {spread:.2f}x)"
    if "dense" in figures:
        pairs = zip(figures["tiled"], figures["dense"], strict=True)
        ratios = [a / b for a, b in pairs]
        text += f", tiled/dense {statistics.median(ratios):.2f}x"
    if "plain" in figures and "peer" in figures:
        ratio = statistics.median(figures["plain"])
        ratio /= statistics.median(figures["peer"])
        text += f", plain/sentence-transformers {ratio:.2f}x"
    if "share" in figures:
        text += f", {figures['share']:.0%} of the matmul rate"
    return text


def _child(job: dict) -> dict:
    command = [sys.executable, __file__, "--one", json.dumps(job)]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, check=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _measure(job: dict) -> dict:
    if job["kind"] == "peer":
        return _measure_peer(job)
    import tensorflow as tf

    tf.random.set_seed(0)
    shape = [job["batch"], DIM]
    queries = tf.math.l2_normalize(tf.random.normal(shape), axis=1)
    documents = tf.math.l2_normalize(tf.random.normal(shape), axis=1)
    if job["kind"] == "time":
        return _time(job, queries, documents)
    if job["kind"] == "time_plain":
        return _seconds(job, ["plain"], queries, documents)
    started = time.perf_counter()
    if job["kind"] != "base":
        _step(job["kind"], job)(queries, documents)[0].numpy()
    return {
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "seconds": time.perf_counter() - started,
    }


def _step(kind: str, job: dict):
    import tensorflow as tf

    from tf_samtone.losses import InBatchSoftmaxLoss, SamToNeLoss

    tile_size = job["tile_size"] if kind == "tiled" else None
    loss = SamToNeLoss(tile_size=tile_size)
    if kind == "plain":
        loss = InBatchSoftmaxLoss(bidirectional=False)
    if kind in ("dense", "plain"):
        # The loss would choose tiles by itself above its own limit.
        from tf_samtone.losses import direction

        direction._LARGEST_DENSE = job["batch"]

    @tf.function(autograph=False)
    def step(queries, documents):
        with tf.GradientTape() as tape:
            tape.watch((queries, documents))
            value = tf.reduce_mean(loss.per_example(queries, documents))
        return value, tape.gradient(value, (queries, documents))

    return step


def _time(job: dict, queries, documents) -> dict:
    batch = job["batch"]
    kinds = ["tiled"] + (["dense"] if batch <= LARGEST_DENSE else [])
    seconds = _seconds(job, kinds, queries, documents)
    # Per tile of a block: logits, logits again, and two gradients; the query
    # direction has two blocks, the document direction one.
    work = 3 * 4 * 2 * batch * batch * DIM
    rate = work / statistics.median(seconds["tiled"])
    return {**seconds, "share": rate / _matmul_rate(job, queries)}


def _seconds(job: dict, kinds: list[str], queries, documents) -> dict:
    """Returns seconds per step by kind, the kinds in alternation."""
    steps = {kind: _step(kind, job) for kind in kinds}
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for repeat in range(job["repeats"] + 1):
        for kind, step in steps.items():
            started = time.perf_counter()
            step(queries, documents)[0].numpy()
            if repeat:
                seconds[kind].append(time.perf_counter() - started)
    return seconds


def _matmul_rate(job: dict, rows) -> float:
    """Returns FLOP/s of the loss's own three matrix products, alone."""
    import tensorflow as tf

    tile = rows[: job["tile_size"]]

    @tf.function(autograph=False)
    def products(rows, tile):
        logits = tf.matmul(rows, tile, transpose_b=True)
        columns = tf.matmul(logits, rows, transpose_a=True)
        return tf.matmul(logits, tile), columns

    products(rows, tile)
    repeats, started = 10, time.perf_counter()
    for _ in range(repeats):
        result = products(rows, tile)
    result[0].numpy()
    seconds = (time.perf_counter() - started) / repeats
    return 3 * 2 * len(rows) * len(tile) * DIM / seconds


def _measure_peer(job: dict) -> dict:
    """Times sentence-transformers' loss on embeddings of the same shape."""
    import torch
    from sentence_transformers.sentence_transformer import losses

    torch.manual_seed(0)
    shape = (job["batch"], DIM)
    vectors = [
        torch.nn.functional.normalize(torch.randn(shape)).requires_grad_()
        for _ in range(2)
    ]
    loss = losses.MultipleNegativesRankingLoss(model=None, scale=100.0)
    seconds = []
    for _ in range(job["repeats"] + 1):
        started = time.perf_counter()
        loss.compute_loss_from_embeddings(vectors, None).backward()
        seconds.append(time.perf_counter() - started)
    return {"peer": seconds[1:]}


if __name__ == "__main__":
    main()
