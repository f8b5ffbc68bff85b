"""Compiles the training step for a TPU, on a machine that has none.

    python benchmarks/tpu_compile.py
    python benchmarks/tpu_compile.py --sizes=small,base --variants=rematerialize
    python benchmarks/tpu_compile.py --check

Needs JAX and libtpu beside the library; a message names them if they are
missing. TensorFlow traces `DualEncoder.train_step` itself (towers, loss,
gradients, finite check, clipping, Adafactor, metrics) with static shapes,
writes it down as XLA's HLO, and libtpu compiles that for one core of a TPU
that is only described to it. The weights are arguments that are updated in
place, as on a device.

What a compiled step proves: its shapes are static, a TPU has all of its
operations, and by the compiler's own plan it fits the core's memory or not.
What it does not: nothing runs, so neither speed nor results are known; there
is one core, so no collectives between cores; and TensorFlow's TPU runtime,
which adds its own buffers and feeds the batches, takes no part.

`tpu_lowering.py` says what of TensorFlow's lowering for a CPU is changed back.
`--check` shows that what libtpu is given is the training step: JAX runs it on
the CPU, for a small model in float32 without dropout, and the results are
compared with TensorFlow's.
"""

import argparse
import importlib.util
import json
import os
import re
import resource
import subprocess
import sys

from tpu_lowering import (
    ENVIRONMENT,
    compiled_for_tpu,
    jitted,
    lowered,
    run_on_cpu,
)

# Hidden width, width inside the feed-forward part, heads, layers of t5.1.1.
SIZES = {
    "small": (512, 1024, 6, 8),
    "base": (768, 2048, 12, 12),
    "large": (1024, 2816, 16, 24),
}
# Small enough to run in seconds; packed, there are two texts in a row.
CHECK = {
    "size": "small",
    "layers": 2,
    "batch": 8,
    "packed_share": 0.5,
    "query_length": 8,
    "document_length": 16,
    "dropout": 0.0,
    "micro_batch": 4,
    "dtype": "float32",
}
VOCABULARY_SIZE = 32128
KEY_VALUE_DIM = 64
PROJECTION_DIM = 768
VARIANTS = ("plain", "packed", "rematerialize", "gradient_cache")
PACKAGES = {"jax": "jax==0.10.2", "libtpu": "libtpu==0.0.52"}
GIB = 2**30
TERA = 1e12


def main() -> None:
    """Prints one row of a table per size and variant."""
    options = _options()
    if options.one:
        job = json.loads(options.one)
        print(json.dumps(_compare(job) if job["check"] else _measure(job)))
        return
    missing = [
        package
        for module, package in PACKAGES.items()
        if importlib.util.find_spec(module) is None
    ]
    if missing:
        # Not a failure: `make bench` runs where these are not installed.
        print(
            "Nothing compiled: this program needs "
            f"{' and '.join(missing)}. Install them with: pip install "
            + " ".join(f'"{package}"' for package in missing)
        )
        return
    if options.check:
        for variant in options.variants.split(","):
            job = {**vars(options), **CHECK, "variant": variant}
            print(_child(job)["sentence"], flush=True)
        return
    print(
        f"One core of {options.topology}; {options.batch} pairs, queries of "
        f"{options.query_length} and documents of {options.document_length} "
        f"tokens, mixed_bfloat16, dropout {options.dropout}; packed: rows for "
        f"{options.packed_share:.0%} of them; gradient cache of "
        f"{options.micro_batch}.\nMemory in GiB; "
        "peak = arguments + temporaries + code (results replace arguments).\n"
    )
    columns = (
        "t5.1.1 | variant | TFLOP | by formula | ratio | arguments | "
        "temporaries | code | peak | fits 16 GB | CPU min (host GiB)"
    )
    print(f"| {columns} |\n|{'---|' * (columns.count('|') + 1)}", flush=True)
    for size in options.sizes.split(","):
        for variant in options.variants.split(","):
            job = {**vars(options), "size": size, "variant": variant}
            print(_row(job, _child(job)), flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--batch", type=int, default=64, help="pairs")
    parser.add_argument("--query_length", type=int, default=64)
    parser.add_argument("--document_length", type=int, default=256)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument(
        "--packed_share",
        type=float,
        default=0.5,
        help="mean length of the packed texts over the longest",
    )
    parser.add_argument("--micro_batch", type=int, default=16)
    parser.add_argument("--layers", type=int, help="instead of all")
    parser.add_argument("--topology", default="v5e:2x2")
    parser.add_argument(
        "--check", action="store_true", help="compare with TensorFlow instead"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    for name, choices in (("sizes", SIZES), ("variants", VARIANTS)):
        unknown = set(getattr(options, name).split(",")) - set(choices)
        if unknown:
            parser.error(
                f"Expected --{name} among {', '.join(choices)}. Received: "
                f"{', '.join(sorted(unknown))}."
            )
    return options


def _child(job: dict) -> dict:
    """Measures in a process of its own, which gives its memory back."""
    command = [sys.executable, __file__, "--one", json.dumps(job)]
    done = subprocess.run(
        command,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _row(job: dict, figures: dict) -> str:
    formula = _formula_flops(job)
    start = f"| {job['size']} | {job['variant']} |"
    end = f"{figures['minutes']:.1f} ({figures['host_gib']:.1f}) |"
    if "needed" in figures:
        return (
            f"{start} | {formula / TERA:.2f} | | | {figures['needed']} | | "
            f"| no | {end}"
        )
    parts = [figures[n] / GIB for n in ("arguments", "temporaries", "code")]
    return (
        f"{start} {figures['flops'] / TERA:.2f} | {formula / TERA:.2f} | "
        f"{figures['flops'] / formula:.2f} | "
        + " | ".join(f"{part:.2f}" for part in [*parts, sum(parts)])
        + f" | yes | {end}"
    )


def _formula_flops(job: dict) -> float:
    """Counts the multiplications and additions of the matrix products."""
    hidden, intermediate, heads, layers = SIZES[job["size"]]
    layers = job["layers"] or layers
    inner = heads * KEY_VALUE_DIM
    weights = 4 * hidden * inner + 3 * hidden * intermediate
    encoder = 0
    for side in ("query", "document"):
        rows, length = _rows(job, side), job[f"{side}_length"]
        # Scores of all pairs of places, then sums over them.
        attention = 2 * 2 * length * inner
        encoder += layers * rows * length * (2 * weights + attention)
    head = 2 * 2 * job["batch"] * hidden * PROJECTION_DIM
    # Query to document and query, document to query.
    loss = 3 * 2 * job["batch"] ** 2 * PROJECTION_DIM
    # A backward pass makes two products of each.
    total = 3 * (encoder + head + loss)
    if job["variant"] == "rematerialize":
        total += encoder
    elif job["variant"] == "gradient_cache":
        total += encoder + head
    return total


def _rows(job: dict, side: str) -> int:
    if job["variant"] == "packed":
        return round(job["batch"] * job["packed_share"])
    return job["batch"]


def _measure(job: dict) -> dict:
    """Compiles one step; returns bytes, FLOPs and what it took here."""
    hlo = _training_step_hlo(job)
    executable, refusal = compiled_for_tpu(hlo, job["topology"])
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "minutes": (usage.ru_utime + usage.ru_stime) / 60,
        "host_gib": usage.ru_maxrss * 1024 / GIB,
    }
    if executable is None:
        found = re.search(
            r"temporaries \(([\d.]+)G\) exceeds available HBM \(([\d.]+)G\)",
            refusal,
        )
        needed = f"{found[1]} of {found[2]}" if found else "too many"
        return {**figures, "needed": needed}
    memory = executable.get_compiled_memory_stats()
    flops = executable.cost_analysis()["flops"]
    if job["variant"] == "gradient_cache":
        # The compiler counts the body of a loop once; nearly all is in them.
        flops *= job["batch"] / job["micro_batch"]
    unaliased = memory.output_size_in_bytes - memory.alias_size_in_bytes
    return {
        **figures,
        "flops": flops,
        "arguments": memory.argument_size_in_bytes,
        "temporaries": memory.temp_size_in_bytes + unaliased,
        "code": memory.generated_code_size_in_bytes,
    }


def _training_step_hlo(job: dict) -> bytes:
    model, features = _model(job), _features(job)
    return lowered(jitted(model.train_step, features), features)


def _model(job: dict):
    import tf_samtone as ts
    from tf_samtone.models.architectures import build_towers

    hidden, intermediate, heads, layers = SIZES[job["size"]]
    options, compile_options = {}, {}
    if job["variant"] == "rematerialize":
        options["rematerialize"] = True
    elif job["variant"] == "gradient_cache":
        compile_options["gradient_cache_batch_size"] = job["micro_batch"]
    encoder = ts.models.T5Encoder(
        vocabulary_size=VOCABULARY_SIZE,
        num_layers=job["layers"] or layers,
        num_heads=heads,
        hidden_dim=hidden,
        intermediate_dim=intermediate,
        key_value_dim=KEY_VALUE_DIM,
        dropout=job["dropout"],
        dtype=job.get("dtype", "mixed_bfloat16"),
        **options,
    )
    towers = build_towers(encoder, projection_dim=PROJECTION_DIM)
    # A training step needs no preprocessors: texts are tokens by then.
    model = ts.models.DualEncoder(*towers, None, None)
    schedule = ts.optimizers.LinearDecay(total_steps=20_000)
    optimizer = ts.optimizers.Adafactor(schedule, global_clipnorm=1.0)
    model.compile(optimizer, loss=ts.losses.SamToNeLoss(), **compile_options)
    # Variables cannot be made while the step is compiled.
    optimizer.build(model.trainable_variables)
    return model


def _features(job: dict) -> dict:
    """Returns the shapes of a batch, as `training_dataset` gives it."""
    import tensorflow as tf

    def tokens(side: str) -> dict[str, tf.TensorSpec]:
        shape = [_rows(job, side), job[f"{side}_length"]]
        if job["variant"] != "packed":
            names = ("token_ids", "padding_mask")
            return {name: tf.TensorSpec(shape, tf.int32) for name in names}
        return {
            "token_ids": tf.TensorSpec(shape, tf.int32),
            "segment_ids": tf.TensorSpec(shape, tf.int32),
            "lengths": tf.TensorSpec([job["batch"]], tf.int32),
        }

    ids = tf.TensorSpec([job["batch"]], tf.int64)
    return {
        "queries": tokens("query"),
        "documents": tokens("document"),
        "query_ids": ids,
        "document_ids": ids,
    }


def _compare(job: dict) -> dict:
    """Runs one step by TensorFlow and, as it is compiled, by JAX."""
    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(0)
    features = _features(job)
    step = jitted(_model(job).train_step, features)
    hlo = lowered(step, features)
    concrete = step.get_concrete_function(*tf.nest.flatten(features))
    known = {id(v.handle): v for v in concrete.variables}
    variables = [known[id(handle)] for handle in concrete.captured_inputs]

    batch = tf.nest.flatten(_batch(features))
    received = run_on_cpu(hlo, [*batch, *(v.numpy() for v in variables)])
    logs = tf.nest.flatten(step(*map(tf.constant, batch)))
    expected = [value.numpy() for value in [*logs, *variables]]
    # Of the largest number of each array; those of Adafactor are tiny.
    differences = [
        np.max(np.abs(np.asarray(a, np.float64) - b))
        / max(np.max(np.abs(b)), 1e-30)
        for a, b in zip(received, expected, strict=True)
    ]
    return {
        "sentence": f"{job['variant']}: loss {float(expected[0]):.6f} by "
        f"TensorFlow, {float(received[0]):.6f} by the compiled module; "
        f"{len(variables)} variables after the step, largest relative "
        f"difference {max(differences):.1e}"
    }


def _batch(features: dict) -> dict:
    """Fills the features with texts: some padding, or two in a row."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)

    def fill(path: tuple, spec: tf.TensorSpec):
        rows, length = [*spec.shape, 1][:2]
        places = np.arange(length)
        if path[-1] == "token_ids":
            values = random.integers(2, VOCABULARY_SIZE, (rows, length))
        elif path[-1] == "padding_mask":
            values = places < random.integers(2, length, (rows, 1))
        elif path[-1] == "segment_ids":
            second = places >= length // 2
            values = 2 * np.arange(rows)[:, None] + 1 + second
        elif path[-1] == "lengths":
            length = features[path[0]]["token_ids"].shape[1]
            values = np.full(rows, length // 2)
        else:
            values = np.arange(rows)
        return values.astype(spec.dtype.as_numpy_dtype)

    return {
        name: {key: fill((name, key), spec) for key, spec in value.items()}
        if isinstance(value, dict)
        else fill((name,), value)
        for name, value in features.items()
    }


if __name__ == "__main__":
    main()
