"""The process that runs torch's libraries for the parity tests.

A process of its own: torch's triton and TensorFlow in one process end in a
segmentation fault (torch 2.14.1 for CUDA, TensorFlow 2.20.0). It reads one
JSON object per line, calls the function named in it, and answers with one
line: the JSON results, and the path of an `.npz` with the arrays among them.
"""

import json
import pathlib
import sys
import traceback

import numpy as np
import sentence_transformers
import torch
import transformers
from sentence_transformers.sentence_transformer import modules

torch.set_grad_enabled(False)


def load(folder: str) -> sentence_transformers.SentenceTransformer:
    """Loads a folder in float32 on the CPU."""
    return sentence_transformers.SentenceTransformer(
        folder,
        device="cpu",
        local_files_only=True,
        model_kwargs={"dtype": torch.float32},
    )


def embeddings(
    folder: str,
    texts: list[str],
    *,
    save_to: str | None = None,
    max_seq_length: int | None = None,
) -> dict:
    """Encodes texts as queries and as documents, with the prompts of each."""
    model = load(folder)
    if max_seq_length:
        model.max_seq_length = max_seq_length
    if save_to:
        model.save(save_to, create_model_card=False)
    queries = documents = model.encode_query(texts)
    if any(model.prompts.values()) or isinstance(model[0], modules.Router):
        documents = model.encode_document(texts)
    return {
        "query": queries,
        "document": documents,
        "max_seq_length": model.max_seq_length,
    }


def hidden_states(
    folder: str, token_ids: list[list[int]], mask: list[list[int]]
) -> dict:
    """Runs the encoder of a T5 folder on padded rows."""
    model = transformers.T5EncoderModel.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    output = model(
        input_ids=torch.tensor(token_ids), attention_mask=torch.tensor(mask)
    )
    return {"states": output.last_hidden_state.numpy()}


def save_t5(folder: str, config: dict, max_shard_size: str) -> dict:
    """Saves an encoder and decoder of random weights."""
    torch.manual_seed(0)
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(**config)
    )
    model.save_pretrained(folder, max_shard_size=max_shard_size)
    return {}


def token_ids(
    folder: str, texts: list[str], max_length: int, specials: list[str]
) -> dict:
    """Tokenizes texts; gives the ids of special tokens as well."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    rows = tokenizer(texts, truncation=True, max_length=max_length)
    return {
        "rows": rows["input_ids"],
        "specials": tokenizer.convert_tokens_to_ids(specials),
    }


FUNCTIONS = {
    function.__name__: function
    for function in (embeddings, hidden_states, save_t5, token_ids)
}


def main() -> None:
    """Answers until there are no more lines."""
    # Whatever the libraries print must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    folder = pathlib.Path(sys.argv[1])
    for number, line in enumerate(sys.stdin):
        call = json.loads(line)
        try:
            result = FUNCTIONS[call["function"]](**call["arguments"])
        except Exception:  # noqa: BLE001 (the other side raises it)
            answer = {"error": traceback.format_exc()}
        else:
            path = folder / f"{number}.npz"
            arrays = {
                key: value
                for key, value in result.items()
                if isinstance(value, np.ndarray)
            }
            np.savez(path, **arrays)
            rest = {k: v for k, v in result.items() if k not in arrays}
            answer = {"arrays": str(path), "rest": rest}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
