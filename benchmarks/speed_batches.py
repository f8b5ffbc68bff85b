"""The pairs of a BEIR folder as token batches that both sides can train on."""

import os
import pathlib

import numpy as np

QUERY_LENGTH = 32
DOCUMENT_LENGTH = 256
PROJECTION_DIM = 768


def texts(folder: str) -> tuple[list[str], list[str]]:
    """Returns the training pairs, queries and documents, in file order."""
    from tf_samtone.data import read_beir_folder

    collection = read_beir_folder(folder)
    pairs = collection.pairs("train")
    return [p.query for p in pairs], [p.document for p in pairs]


def dataset(job: dict, packing: str):
    """Returns `training_dataset` of the pairs, shuffled by the job's seed."""
    from tf_samtone.data import training_dataset
    from tf_samtone.text import TextPreprocessor, load_tokenizer

    tokenizer = load_tokenizer(job["preset"])
    options = {} if packing == "none" else {"packing": packing}
    queries, documents = texts(job["data"])
    return training_dataset(
        queries,
        documents,
        query_preprocessor=TextPreprocessor(tokenizer, QUERY_LENGTH),
        document_preprocessor=TextPreprocessor(tokenizer, DOCUMENT_LENGTH),
        batch_size=job["batch_size"],
        seed=job["seed"],
        **options,
    )


def write_batches(job: dict, steps: int, path: pathlib.Path) -> None:
    """Writes what the peer trains on: ids and lengths of `steps` batches.

    The token ids are this library's, so that no difference of tokenizers can
    change the work; the peer pads each batch to its own longest row.
    """
    arrays = {}
    for step, batch in enumerate(dataset(job, "none").take(steps)):
        for side in ("queries", "documents"):
            mask = batch[side]["padding_mask"].numpy()
            lengths = mask.sum(-1)
            ids = batch[side]["token_ids"].numpy()[:, : lengths.max()]
            arrays[f"{side}_{step}"] = ids
            arrays[f"{side}_lengths_{step}"] = lengths
    np.savez(path, **arrays)


def projection_kernel(hidden_dim: int) -> np.ndarray:
    """Returns the same first projection for both sides."""
    generator = np.random.default_rng(0)
    kernel = generator.normal(size=(hidden_dim, PROJECTION_DIM))
    return (kernel * hidden_dim**-0.5).astype(np.float32)


def threads() -> int:
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))
