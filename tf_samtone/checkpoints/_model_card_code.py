"""The code that a model card shows for each library."""

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tf_samtone.models.dual_encoder import DualEncoder

# A reader puts the path or the name on the hub here.
FOLDER = "path/to/this/folder"

_SENTENCE_TRANSFORMERS = f"""\
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{FOLDER}")
queries = model.encode_query(["a question"])
documents = model.encode_document(["an answer", "another answer"])
scores = model.similarity(queries, documents)"""
_HUGGING_FACE = f"""\
import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, T5EncoderModel

folder = "{FOLDER}"


def encode(texts, tower, prefix, max_length):
    tokenizer = AutoTokenizer.from_pretrained(tower)
    encoder = T5EncoderModel.from_pretrained(tower).eval()
    inputs = tokenizer(
        [prefix + text for text in texts],
        padding=True,
        truncation=True,
        max_length=max_length,
        return_tensors="pt",
    )
    with torch.no_grad():
        hidden = encoder(**inputs).last_hidden_state
    mask = inputs["attention_mask"].unsqueeze(-1)
    vectors = (hidden * mask).sum(1) / mask.sum(1)
"""
_PROJECTION = """\
    weights = load_file(f"{tower}/projection.safetensors")
    vectors = torch.nn.functional.linear(
        vectors, weights["linear.weight"], weights.get("linear.bias")
    )
"""
_ACTIVATIONS = {
    "linear": "",
    "relu": "    vectors = torch.relu(vectors)\n",
    "tanh": "    vectors = torch.tanh(vectors)\n",
}
_NORMALIZE = "    vectors = torch.nn.functional.normalize(vectors, dim=-1)\n"


def usage_code(model: "DualEncoder", format: str) -> str:
    """Return a program that encodes and scores texts.

    Args:
        model: `DualEncoder`.
        format: str. `"sentence_transformers"` or `"hugging_face"`.

    Returns:
        str. Python source.
    """
    if format == "sentence_transformers":
        return _SENTENCE_TRANSFORMERS
    import keras

    code = _HUGGING_FACE
    projection = model.query_tower.projection
    if projection is None:
        code = code.replace("from safetensors.torch import load_file\n", "")
    else:
        code += _PROJECTION
        activation = keras.activations.serialize(projection.activation)
        code += _ACTIVATIONS[activation]
    if model.query_tower.normalize:
        code += _NORMALIZE
    code += "    return vectors\n\n\n"
    is_shared = model.query_tower is model.document_tower
    for name, texts, preprocessor in (
        ("query", '["a question"]', model.query_preprocessor),
        (
            "document",
            '["an answer", "another answer"]',
            model.document_preprocessor,
        ),
    ):
        variable = "queries" if name == "query" else "documents"
        tower = "folder" if is_shared else f'f"{{folder}}/{name}"'
        prefix = json.dumps(preprocessor.prefix, ensure_ascii=False)
        length = preprocessor.sequence_length
        code += f"{variable} = encode({texts}, {tower}, {prefix}, {length})\n"
    return code + "scores = queries @ documents.T"
