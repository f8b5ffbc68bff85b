"""sentence-transformers' side of sentence_transformers_round_trip.py."""

import time
from collections.abc import Callable

import numpy as np
import sentence_transformers
import torch
import transformers
from speed_protocol import serve


def start(job: dict) -> tuple[Callable[[dict], float], str]:
    """Loads the folder; returns the command handler and the versions."""
    model = sentence_transformers.SentenceTransformer(
        job["folder"],
        device="cpu",
        local_files_only=True,
        model_kwargs={"dtype": torch.float32},
    )

    def encode(command: dict) -> float:
        model.max_seq_length = command["length"]
        started = time.perf_counter()
        embeddings = model.encode(command["texts"], show_progress_bar=False)
        seconds = time.perf_counter() - started
        np.save(command["path"], embeddings)
        return seconds

    modules = ", ".join(type(module).__name__ for module in model)
    return encode, (
        f"sentence-transformers {sentence_transformers.__version__}, "
        f"transformers {transformers.__version__}, torch {torch.__version__}: "
        f"{modules}"
    )


if __name__ == "__main__":
    serve(start)
