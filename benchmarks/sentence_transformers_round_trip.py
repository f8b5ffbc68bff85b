"""Fine-tuning a sentence-transformers model here, and its scores over there.

    python benchmarks/sentence_transformers_round_trip.py
    python benchmarks/sentence_transformers_round_trip.py --documents 2000
    python benchmarks/sentence_transformers_round_trip.py --dtype mixed_bfloat16

Makes a sentence-transformers folder out of T5 weights and a random Dense
without bias, starts a dual encoder from it, trains it on the pairs of MedQuAD
with SamToNe, writes it as a sentence-transformers folder, and encodes the
test queries and the documents both here and in sentence-transformers, which
runs as a process of its own in float32. Prints MRR@10 of both, the largest
difference of any number of any embedding, and times. Ends with an error if the
scores differ by more than 1e-4.

A folder has one length for queries and documents. So that both sides encode
the same tokens, the peer's is set to this side's before each.

With `--documents`, the documents that the test queries are judged on come
first: the scores are then those of an easier task. Needs the bench extra.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import numpy as np
from speed_protocol import Side

QUERY_LENGTH = 24
DOCUMENT_LENGTH = 64
MOST_DIFFERENCE = 1e-4


def main() -> None:
    """Prints a line per step, and one per side."""
    options = _options()
    import tf_samtone as ts

    collection = ts.data.read_beir_folder(options.data)
    texts = _texts(collection, options.documents)
    with tempfile.TemporaryDirectory() as parent:
        start, end = pathlib.Path(parent, "start"), pathlib.Path(parent, "end")
        _make_start(start, options)
        model = _load(start, options.dtype)
        _train(model, collection, options)
        _, seconds = _timed(_save, model, end)
        print(f"written in {seconds:.1f} s: {_listing(end)}", flush=True)
        sides = {f"here, {options.dtype}": _encode(model, texts)}
        if options.dtype != "float32":
            # In the peer's dtype, from the folder that the peer gets.
            sides["here, float32"] = _encode(_load(end, "float32"), texts)
        sides["sentence-transformers"] = _encode_there(end, texts)
    scores = {
        name: _report(name, side, texts, collection)
        for name, side in sides.items()
    }
    *_, ours, theirs = sides.values()
    _compare(ours, theirs)
    *_, ours, theirs = scores.values()
    if abs(ours - theirs) > MOST_DIFFERENCE:
        sys.exit(f"MRR@10 differs by {ours - theirs:+.6f}")


def _texts(collection, limit: int | None) -> dict:
    query_ids, queries = collection.evaluation_queries("test")
    judged = {
        document_id
        for grades in collection.qrels["test"].values()
        for document_id in grades
    }
    # False sorts before True; the order is otherwise that of the file.
    ids = sorted(collection.corpus, key=lambda i: i not in judged)[:limit]
    return {
        "query_ids": query_ids,
        "queries": queries,
        "document_ids": ids,
        "documents": [collection.corpus[i] for i in ids],
    }


def _make_start(folder: pathlib.Path, options: argparse.Namespace) -> None:
    """Writes the T5 weights with a random projection."""
    import keras

    from tf_samtone.models import DualEncoder

    keras.utils.set_random_seed(options.seed)
    model = DualEncoder.from_preset(
        options.preset,
        projection_dim=options.projection_dim,
        dropout=0.0,
        dtype="float32",
    )
    _save(model, folder)
    print(f"start: {_listing(folder)}", flush=True)


def _save(model, folder: pathlib.Path) -> None:
    from tf_samtone.checkpoints import save_sentence_transformers

    save_sentence_transformers(model, folder)


def _load(folder: pathlib.Path, dtype: str):
    from tf_samtone.models import DualEncoder

    return DualEncoder.from_preset(
        str(folder),
        query_length=QUERY_LENGTH,
        document_length=DOCUMENT_LENGTH,
        dropout=0.0,
        dtype=dtype,
    )


def _train(model, collection, options: argparse.Namespace) -> None:
    import tf_samtone as ts

    pairs = collection.pairs("train")
    dataset = ts.data.training_dataset(
        [pair.query for pair in pairs],
        [pair.document for pair in pairs],
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        batch_size=options.batch_size,
        seed=options.seed,
        packing="rows",
    )
    model.compile(
        ts.optimizers.Adafactor(options.learning_rate),
        ts.losses.SamToNeLoss(temperature=0.01, same_tower="query"),
    )
    history, seconds = _timed(
        model.fit,
        dataset,
        steps_per_epoch=options.steps,
        epochs=1,
        verbose=0,
    )
    loss = history.history["loss"][-1]
    print(
        f"trained {options.steps} steps of {options.batch_size} pairs in "
        f"{seconds:.0f} s, mean loss {loss:.3f}",
        flush=True,
    )


def _encode(model, texts: dict) -> dict:
    queries, query_seconds = _timed(model.encode_queries, texts["queries"])
    documents, seconds = _timed(model.encode_documents, texts["documents"])
    return {
        "queries": queries,
        "documents": documents,
        "seconds": query_seconds + seconds,
    }


def _encode_there(folder: pathlib.Path, texts: dict) -> dict:
    peer = Side("round_trip_peer.py", {"folder": str(folder)})
    print(peer.about, flush=True)
    side = {"seconds": 0.0}
    for name, length in (
        ("queries", QUERY_LENGTH),
        ("documents", DOCUMENT_LENGTH),
    ):
        path = folder.parent / f"{name}.npy"
        side["seconds"] += peer.ask(
            {"texts": texts[name], "length": length, "path": str(path)}
        )
        side[name] = np.load(path, allow_pickle=False)
    peer.close()
    return side


def _report(name: str, side: dict, texts: dict, collection) -> float:
    import tf_samtone as ts

    index = ts.retrieval.ExactIndex.build(
        side["documents"], texts["document_ids"]
    )
    scores, ids = index.search(side["queries"], min(10, len(index)))
    run = ts.retrieval.to_run(texts["query_ids"], scores, ids)
    qrels = collection.qrels["test"]
    mrr = ts.evaluation.evaluate(run, qrels, ["MRR@10"])["MRR@10"]
    print(
        f"{name}: MRR@10 {mrr:.6f} ({len(texts['queries'])} queries, "
        f"{len(index)} documents), encoded in {side['seconds']:.0f} s",
        flush=True,
    )
    return mrr


def _compare(ours: dict, theirs: dict) -> None:
    for name in ("queries", "documents"):
        rows = np.abs(ours[name] - theirs[name]).max(axis=1)
        scale = np.abs(theirs[name]).max()
        print(
            f"{name}: largest difference {rows.max():.2e} of numbers up to "
            f"{scale:.2f}; over 1e-5 of that in {(rows > 1e-5 * scale).sum()} "
            f"of {len(rows)} texts, {rows[rows <= 1e-5 * scale].max():.2e} in "
            "the others"
        )


def _listing(folder: pathlib.Path) -> str:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    size = sum(p.stat().st_size for p in files) / 2**20
    names = ", ".join(str(p.relative_to(folder)) for p in files)
    return f"{size:.0f} MiB in {names}"


def _timed(function, *arguments, **options) -> tuple:
    started = time.perf_counter()
    result = function(*arguments, **options)
    return result, time.perf_counter() - started


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--preset", default="../shared/data/t5_small_encoder")
    parser.add_argument("--data", default="../shared/data/medquad")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--projection_dim", type=int, default=512)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--learning_rate", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, help="default: all")
    return parser.parse_args()


if __name__ == "__main__":
    main()
