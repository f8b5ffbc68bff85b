"""Peak memory of a training step against the formula of `MemoryEstimate`.

    python benchmarks/step_memory.py
    python benchmarks/step_memory.py --batches 8,16 --dtype mixed_bfloat16

The encoder of t5.1.1-small with random weights, queries of 32 tokens and
documents of 128, all of them real. Each batch runs in a process of its own,
because a peak of memory cannot be taken back. The slope between two batches is
what a pair takes; the constant part contains TensorFlow, which the formula
leaves out.
"""

import argparse
import json
import os
import resource
import subprocess
import sys

QUERY_LENGTH, DOCUMENT_LENGTH = 32, 128
MIB = 2**20


def main() -> None:
    """Prints one line per batch size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", default="8,16,32")
    parser.add_argument("--size", default="small")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--optimizer", default="adafactor")
    parser.add_argument("--dropout", type=float, default=0.0)
    parser.add_argument("--rematerialize", action="store_true")
    parser.add_argument("--gradient_cache_batch_size", type=int, default=0)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_measure(options, options.one)))
        return
    previous = None
    for batch in map(int, options.batches.split(",")):
        command = [sys.executable, *sys.argv, "--one", str(batch)]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        row = json.loads(done.stdout.splitlines()[-1])
        line = (
            f"batch {batch:4d}: peak {row['peak']:6.0f} MiB, of it weights "
            f"and step {row['step']:6.0f}; formula {row['formula']:6.0f}"
        )
        if previous:
            pairs = batch - previous["batch"]
            real = (row["peak"] - previous["peak"]) / pairs
            formula = (row["formula"] - previous["formula"]) / pairs
            line += f"; per pair {real:.1f}, formula {formula:.1f} MiB"
            line += f" ({formula / real - 1:+.0%})"
        print(line, flush=True)
        previous = {**row, "batch": batch}


def _measure(options: argparse.Namespace, batch: int) -> dict[str, float]:
    """Fits two steps and returns MiB."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf

    # Fewer threads hold fewer buffers that happen to be alive together.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    from tf_samtone.losses import SamToNeLoss
    from tf_samtone.trainers.memory_estimate import MemoryEstimate
    from tf_samtone.trainers.training_load import TrainingLoad

    load = TrainingLoad(
        batch_size=batch,
        query_length=QUERY_LENGTH,
        document_length=DOCUMENT_LENGTH,
        dtype=options.dtype,
        optimizer=options.optimizer,
        dropout=options.dropout > 0,
        rematerialize=options.rematerialize,
        gradient_cache_batch_size=options.gradient_cache_batch_size,
    )
    size, model = build(options)
    model.compile(
        optimizer=optimizer(options.optimizer),
        loss=SamToNeLoss(),
        gradient_cache_batch_size=options.gradient_cache_batch_size or None,
    )
    before = _peak() - 4 * model.count_params() / MIB
    model.fit(dataset(batch), steps_per_epoch=options.steps, verbose=0)
    return {
        "peak": _peak(),
        "step": _peak() - before,
        "formula": MemoryEstimate.of(size, load).total / MIB,
    }


def build(options: argparse.Namespace) -> tuple:
    """Returns the size and a model with random weights."""
    import dataclasses
    import pathlib

    import keras_hub

    from tf_samtone.models import DualEncoder, T5Encoder
    from tf_samtone.models.model_sizes import find_model_size

    size = find_model_size(f"t5_1.1_{options.size}").encoder
    encoder = T5Encoder(
        **dataclasses.asdict(size),
        dropout=options.dropout,
        dtype=options.dtype,
        rematerialize=options.rematerialize,
    )
    tests = pathlib.Path(__file__).resolve().parent.parent / "tests"
    vocabulary = str(tests / "data_files" / "tiny.spm")
    model = DualEncoder.from_encoder(
        encoder,
        keras_hub.models.T5Tokenizer(vocabulary),
        query_length=QUERY_LENGTH,
        document_length=DOCUMENT_LENGTH,
    )
    return size, model


def optimizer(name: str) -> object:
    """Returns an optimizer with its defaults."""
    import keras

    from tf_samtone.optimizers import Adafactor

    return Adafactor() if name == "adafactor" else keras.optimizers.AdamW()


def dataset(batch: int) -> object:
    """Returns the same batch of random tokens again and again."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(0)

    def tokens(length: int) -> dict:
        ids = random.integers(3, 300, (batch, length))
        return {
            "token_ids": ids.astype("int32"),
            "padding_mask": np.ones_like(ids, dtype="int32"),
        }

    features = {
        "queries": tokens(QUERY_LENGTH),
        "documents": tokens(DOCUMENT_LENGTH),
    }
    return tf.data.Dataset.from_tensors(features).repeat()


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
