"""Trains a tiny recipe by the command line, and kills itself if asked.

    python train_and_die.py FOLDER OUTPUT [--kind=KIND] [--die=WHERE:N] [FLAGS]

FOLDER gets a preset, a BEIR folder and a recipe, if it has none: `short` (the
default), `plain` (the same without dropout), or `long`, with two stages and
validation. FLAGS go to samtone-train. WHERE says what happens:

    step:N    SIGKILL after step N of this process, before it is saved
    write:N   SIGKILL while checkpoint N of this process is being written
    rotate:N  SIGKILL when it is complete and old ones are to be deleted
    term:N    SIGTERM after step N of this process, which goes on
"""

import json
import os
import pathlib
import shutil
import signal
import sys

from safetensors.numpy import load_file, save_file

DATA_FILES = pathlib.Path(__file__).parents[1] / "data_files"
SUBJECTS = [f"{a}{b}" for a in "bdfgklm" for b in ("ale", "oru", "ine", "ust")]
COMMON = """
name = "tiny"
seed = 3

[data]
path = "{folder}/beir"

[model]
preset = "{folder}/preset"
projection_dim = 8
query_length = 6
document_length = 8
dropout = {dropout}

[optimizer]
name = "{optimizer}"
global_clipnorm = 1.0

[evaluation]
metrics = ["P@1", "MRR@10"]
splits = ["test"]
bm25 = false
"""
SHORT = """
[[stages]]
steps = 12
batch_size = 8
warmup_steps = 3

[training]
checkpoint_every = 3
"""
LONG = """
[[stages]]
name = "first"
steps = 80
batch_size = 8
warmup_steps = 9

[[stages]]
name = "second"
steps = 60
batch_size = 4
group_size = 2

[training]
checkpoint_every = 3
validate_every = 10
validation_documents = 20
early_stopping_patience = 5
"""


def write_inputs(folder: pathlib.Path, kind: str) -> None:
    """Write a preset, a collection and a recipe."""
    preset = folder / "preset"
    shutil.copytree(DATA_FILES / "t5_tiny_gated_gelu", preset)
    shutil.copy(DATA_FILES / "tiny.spm", preset / "spiece.model")
    # One of its two layers is enough, and is traced in half the time.
    config = json.loads((preset / "config.json").read_text())
    config["num_layers"] = 1
    (preset / "config.json").write_text(json.dumps(config))
    weights = load_file(preset / "model.safetensors")
    first = {n: w for n, w in weights.items() if "block.1." not in n}
    save_file(first, preset / "model.safetensors")
    (folder / "beir" / "qrels").mkdir(parents=True)
    corpus = [{"_id": s, "text": f"{s}, a {s[::-1]}"} for s in SUBJECTS]
    queries = [
        {"_id": f"{s}-{i}", "text": f"{s}, {question}"}
        for s in SUBJECTS
        for i, question in enumerate(("what is", "who knows"))
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "beir" / f"{name}.jsonl").write_text(text)
    for split, subjects in (
        ("train", SUBJECTS[:20]),
        ("dev", SUBJECTS[20:24]),
        ("test", SUBJECTS[24:]),
    ):
        lines = [f"{s}-{i}\t{s}\t1\n" for s in subjects for i in (0, 1)]
        path = folder / "beir" / "qrels" / f"{split}.tsv"
        path.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    recipe = COMMON.format(
        folder=folder.resolve(),
        optimizer="adafactor" if kind == "long" else "adamw",
        dropout=0.0 if kind == "plain" else 0.2,
    )
    recipe += LONG if kind == "long" else SHORT
    (folder / "recipe.toml").write_text(recipe)


def call_before(owner, name: str, count: int, action) -> None:
    """Do something before call `count` of a function or method."""
    function = getattr(owner, name)
    calls = []

    def wrapped(*arguments, **options):
        calls.append(None)
        if len(calls) == count:
            action()
        return function(*arguments, **options)

    setattr(owner, name, wrapped)


def prepare_death(where: str, count: int) -> None:
    """Arrange for the signal."""
    from tf_samtone.trainers import checkpoint_callback, checkpoint_store

    owner, name = {
        "step": (checkpoint_callback.CheckpointCallback, "on_train_batch_end"),
        "term": (checkpoint_callback.CheckpointCallback, "on_train_batch_end"),
        "write": (checkpoint_store, "write_manifest"),
        "rotate": (checkpoint_store.CheckpointStore, "_rotate"),
    }[where]
    number = signal.SIGTERM if where == "term" else signal.SIGKILL
    call_before(owner, name, count, lambda: os.kill(os.getpid(), number))


def run(folder: str, output: str, *arguments: str) -> int:
    """Train; return the exit code of the command line."""
    import tensorflow as tf

    from tf_samtone.trainers.train_main import main

    # Sums in another order would have other last bits.
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    kind, flags = "short", []
    for argument in arguments:
        name, _, value = argument.partition("=")
        if name == "--kind":
            kind = value
        elif name == "--die":
            where, _, count = value.partition(":")
            prepare_death(where, int(count))
        else:
            flags.append(argument)
    recipe = pathlib.Path(folder) / "recipe.toml"
    if not recipe.exists():
        write_inputs(recipe.parent, kind)
    return main(["train", f"--recipe={recipe}", f"--output={output}", *flags])


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
