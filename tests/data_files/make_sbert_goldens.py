"""Makes the embeddings of sentence-transformers that the tests compare with.

Needs packages that the library does not: `pip install torch==2.14.1
transformers==5.25.0 sentence-transformers==6.3.0 sentencepiece`. Run from the
root of the repository:

    PYTHONPATH=tests python tests/data_files/make_sbert_goldens.py
    PYTHONPATH=tests python tests/data_files/make_sbert_goldens.py \
        --real_weights=../shared/data/t5_small_encoder

The first writes `sbert_goldens/index.json` (texts, their lengths, SHA-256 of
the weights of each folder) and `sbert_goldens/embeddings.npz`; the folders
themselves follow from their seeds (`sbert_cases.py`). The second writes
`sbert_goldens/t5_small_encoder.npz`: hidden states of transformers' T5 for
texts of 1 to 512 tokens, at a few positions, and their means. Everything is
float32 on one thread of a CPU, one text at a time, so that no padding has a
part in it.
"""

import argparse
import itertools
import json
import pathlib
import random
import tempfile

import numpy as np
import sbert_cases
import sentence_transformers
import sentencepiece
import torch
import transformers
from make_tiny_vocabulary import TINY_VOCABULARY, sentences

LENGTHS = (1, 2, 3, 17, 64, 129, 300, 511, 512, 600)
REAL_LENGTHS = (1, 2, 8, 64, 200, 512)
REAL_SENTENCES = (
    "What are the symptoms of Adult Acute Lymphoblastic Leukemia ?",
    "shutil.rmtree(path, ignore_errors=False, onerror=None)",
    "Ein kleiner Satz mit Umlauten: Größe, Straße, naïve façade.",
    "The quick brown fox jumps over the lazy dog.",
    "In 1969, 2 of 3 astronauts walked on the Moon (July 20th).",
)


def text_of(
    processor: sentencepiece.SentencePieceProcessor,
    length: int,
    source: list[str],
    seed: int,
) -> str:
    """Returns a text of exactly `length` tokens, counting `</s>`."""
    drawn = random.Random(seed)
    words = " ".join(drawn.sample(source, len(source))).split()
    text = ""
    for word in itertools.cycle(words):
        tokens = len(processor.encode(text)) + 1
        if tokens == length:
            return text
        longer = f"{text} {word}".strip()
        # A word too long at the end is left out for a shorter one.
        if len(processor.encode(longer)) + 1 <= length:
            text = longer
    raise AssertionError


def make_goldens() -> None:
    """Writes the embeddings of every folder."""
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(TINY_VOCABULARY)
    )
    source = sentences()
    texts = [text_of(processor, n, source, n) for n in LENGTHS]
    embeddings, digests = {}, {}
    for name, case in sbert_cases.CASES.items():
        with tempfile.TemporaryDirectory() as parent:
            folder = pathlib.Path(parent, name)
            digests[name] = case.write(folder)
            model = load(folder)
            if not sbert_cases.has_two_sides(case):
                embeddings[name] = model.encode(texts, batch_size=1)
                continue
            for side in ("query", "document"):
                encode = getattr(model, f"encode_{side}")
                embeddings[f"{name}.{side}"] = encode(texts, batch_size=1)
    sbert_cases.GOLDENS.mkdir(exist_ok=True)
    index = {
        "lengths": LENGTHS,
        "texts": texts,
        "weights_sha256": digests,
        "versions": {
            package.__name__: package.__version__
            for package in (sentence_transformers, transformers, torch)
        },
    }
    content = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    path = sbert_cases.GOLDENS / "index.json"
    path.write_text(content, encoding="utf-8")
    np.savez_compressed(sbert_cases.GOLDENS / "embeddings.npz", **embeddings)


def load(folder: pathlib.Path) -> sentence_transformers.SentenceTransformer:
    """Loads a folder in float32 on the CPU."""
    return sentence_transformers.SentenceTransformer(
        str(folder),
        device="cpu",
        local_files_only=True,
        model_kwargs={"dtype": torch.float32},
    )


def make_real(directory: pathlib.Path) -> None:
    """Writes hidden states of real weights, and their means."""
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(directory / "spiece.model")
    )
    model = transformers.T5EncoderModel.from_pretrained(
        directory, dtype=torch.float32
    ).eval()
    golden = {}
    for length in REAL_LENGTHS:
        text = text_of(processor, length, list(REAL_SENTENCES), length)
        ids = [*processor.encode(text), 1]
        with torch.no_grad():
            output = model(input_ids=torch.tensor([ids])).last_hidden_state
        states = output[0].numpy()
        positions = np.unique([0, length // 3, length // 2, length - 1])
        golden[f"token_ids_{length}"] = np.array(ids, np.int32)
        golden[f"positions_{length}"] = positions
        golden[f"states_{length}"] = states[positions]
        golden[f"mean_{length}"] = states.astype(np.float64).mean(0)
        golden[f"scale_{length}"] = np.abs(states).max()
    path = sbert_cases.GOLDENS / "t5_small_encoder.npz"
    np.savez_compressed(path, **golden)


def main() -> None:
    """Makes the goldens of random weights, or those of real ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real_weights", help="a Hugging Face T5 folder")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.real_weights:
        make_real(pathlib.Path(arguments.real_weights))
    else:
        make_goldens()


if __name__ == "__main__":
    main()
