"""Training speed against sentence-transformers, on the pairs of MedQuAD.

    python benchmarks/training_speed.py                      # bfloat16
    python benchmarks/training_speed.py --dtype float32
    python benchmarks/training_speed.py --threads 1 --clock cpu   # busy machine

Both sides train the same T5 encoder with mean pooling and a projection, from
the same weights, on the same token batches in the same order, with the loss
that both can express: one softmax over the documents and the other queries
(SamToNe towards the documents). Each side is a process of its own that
computes only when it is asked to, in turn with the other. The first losses
are printed: without dropout they have to agree, or the work was not the same.

What the peer is: sentence-transformers' modules and its
MultipleNegativesRankingLoss around transformers' T5EncoderModel, a plain loop
of forward, backward and step, batches padded to their longest row. For
bfloat16 it runs with autocast, which is what its trainer does; for
pure_bfloat16 with weights in bfloat16, which lose most of the small updates
(see its losses). Its time does not include tokenizing; this side's includes
laying out the batch.

At large batches torch spends up to a third of its time on memory that glibc
returns to the system and asks for again. That is what its users get, and the
default here; `--keep_memory` sets malloc's variables so that it does not.

Needs torch and sentence-transformers. On a machine that others use as well,
wall times tell nothing about two threads that wait for each other; there,
take one thread and count CPU seconds.
"""

import argparse
import pathlib
import statistics
import tempfile
from collections.abc import Iterator

import speed_batches
from speed_protocol import Side

_DTYPES = {
    "float32": ("float32", ["float32"]),
    "bfloat16": ("mixed_bfloat16", ["autocast_bfloat16"]),
    # The peer's weights in bfloat16 too.
    "pure_bfloat16": ("mixed_bfloat16", ["bfloat16"]),
}
_WARM_UP_STEPS = 2
# Read by glibc's malloc: nothing by mmap, and nothing given back.
_KEEP_MEMORY = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": str(2**34),
}


def main() -> None:
    """Prints one report per dtype."""
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        job = {
            **vars(options),
            "batches": str(pathlib.Path(folder) / "batches.npz"),
        }
        steps = _WARM_UP_STEPS + options.blocks * options.steps
        speed_batches.write_batches(job, steps, job["batches"])
        for dtype in options.dtype.split(","):
            _compare(dtype, job)


def _options() -> argparse.Namespace:
    shared = pathlib.Path(__file__).parents[2] / "shared" / "data"
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--data", default=str(shared / "medquad"), help="a BEIR folder")
    add("--preset", default=str(shared / "t5_small_encoder"))
    add("--dtype", default="bfloat16", help=f"of {', '.join(_DTYPES)}: a,b")
    add("--packing", default="rows", choices=["rows", "none"])
    add("--batch_size", type=int, default=64)
    add("--optimizer", default="adafactor", choices=["adafactor", "adamw"])
    add("--learning_rate", type=float, default=1e-3)
    add("--temperature", type=float, default=0.01)
    add("--dropout", type=float, default=0.0)
    add("--seed", type=int, default=0)
    add("--blocks", type=int, default=8, help="turns of each side")
    add("--steps", type=int, default=2, help="steps per turn")
    add("--threads", type=int, default=speed_batches.threads())
    add("--clock", default="wall", choices=["wall", "cpu"])
    add(
        "--keep_memory",
        action="store_true",
        help="tell the peer's malloc not to return memory between operations",
    )
    return parser.parse_args()


def _compare(dtype: str, job: dict) -> None:
    ours_dtype, peer_dtypes = _DTYPES[dtype]
    memory = "keeps its memory" if job["keep_memory"] else "as it is"
    print(
        f"\n{dtype}: batch {job['batch_size']}, {job['optimizer']}, dropout "
        f"{job['dropout']}, {job['threads']} threads, {job['clock']} time, "
        f"peer's malloc {memory}",
        flush=True,
    )
    ours = Side("speed_samtone.py", {**job, "dtype": ours_dtype})
    print(f"ours: {ours.about['versions']}, packing {job['packing']}")
    peers = {
        f"peer {name}": Side(
            "speed_peer.py",
            {**job, "dtype": name},
            _KEEP_MEMORY if job["keep_memory"] else {},
        )
        for name in peer_dtypes
    }
    for name, peer in peers.items():
        print(f"{name}: {peer.about['versions']}")
    sides = {"ours": ours, **peers}
    warm_up = {"do": "run", "first": 0, "steps": _WARM_UP_STEPS}
    _print_losses({name: side.ask(warm_up) for name, side in sides.items()})
    turns = list(_turns(sides, job))
    for peer in peers.values():
        peer.close()
    for name in sides:
        _print_speed(name, [turn[name] for turn in turns], job)
    for name in peers:
        _print_ratio(name, turns, job)
    _print_products(ours.ask({"do": "products", "repeats": 5}), job)
    ours.close()


def _turns(sides: dict[str, Side], job: dict) -> Iterator[dict[str, dict]]:
    """Yields the sides' answers; each block starts with another side."""
    names = list(sides)
    for block in range(job["blocks"]):
        first = _WARM_UP_STEPS + block * job["steps"]
        command = {"do": "run", "first": first, "steps": job["steps"]}
        start = block % len(names)
        answers = {
            name: sides[name].ask(command)
            for name in names[start:] + names[:start]
        }
        print(
            f"block {block}: "
            + ", ".join(
                f"{name} {_seconds(answers[name], job):.2f} s (loss "
                f"{answers[name]['losses'][-1]:.4f})"
                for name in names
            ),
            flush=True,
        )
        yield answers


def _print_losses(answers: dict[str, dict]) -> None:
    for step in range(_WARM_UP_STEPS):
        print(
            f"loss of step {step}: "
            + ", ".join(
                f"{name} {answer['losses'][step]:.5f}"
                for name, answer in answers.items()
            )
        )


def _print_speed(name: str, answers: list[dict], job: dict) -> None:
    pairs = job["batch_size"] * job["steps"]
    seconds = [_seconds(answer, job) for answer in answers]
    tokens = sum(answer["tokens"] for answer in answers)
    share = tokens / sum(answer["positions"] for answer in answers)
    print(
        f"{name}: {pairs / statistics.median(seconds):.2f} pairs/s, best "
        f"{pairs / min(seconds):.2f}; {tokens / sum(seconds):.0f} real "
        f"tokens/s; {share:.1%} of the places hold tokens"
    )


def _print_ratio(name: str, turns: list[dict], job: dict) -> None:
    ratios = [
        _seconds(turn[name], job) / _seconds(turn["ours"], job)
        for turn in turns
    ]
    print(
        f"ours / {name}: median {statistics.median(ratios):.2f}x, from "
        f"{min(ratios):.2f}x to {max(ratios):.2f}x"
    )


def _print_products(answer: dict, job: dict) -> None:
    step = statistics.median(answer["step"][_clock(job)])
    products = statistics.median(answer["products"][_clock(job)])
    ratios = [
        a / b
        for a, b in zip(
            answer["step"][_clock(job)],
            answer["products"][_clock(job)],
            strict=True,
        )
    ]
    print(
        f"our step {step:.2f} s, its {answer['count']} matrix products alone "
        f"{products:.2f} s ({answer['flops'] / products / 1e9:.0f} GFLOP/s): "
        f"{statistics.median(ratios):.2f}x, from {min(ratios):.2f}x to "
        f"{max(ratios):.2f}x",
        flush=True,
    )


def _clock(job: dict) -> str:
    return "seconds" if job["clock"] == "wall" else "cpu_seconds"


def _seconds(answer: dict, job: dict) -> float:
    return sum(answer[_clock(job)])


if __name__ == "__main__":
    main()
