"""The sections of a model card."""

import json
import pathlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tf_samtone.checkpoints._model_card_code import usage_code
from tf_samtone.models.encoder_size import EncoderSize

if TYPE_CHECKING:
    from tf_samtone.checkpoints.model_card import ModelCard
    from tf_samtone.models.dual_encoder import DualEncoder

LIBRARIES = {
    "sentence_transformers": "sentence-transformers",
    "hugging_face": "transformers",
}
_TAGS = ("sentence-similarity", "feature-extraction", "dual-encoder", "samtone")
# YAML 1.1 reads these as truth values or nothing; "no" is also a language.
_NOT_PLAIN = {"y", "n", "yes", "no", "true", "false", "on", "off", "null"}
# Places of one machine, and notes for who is about to train.
_PATHS = {"data.path", "model.preset"}
_LEFT_OUT = {
    "name",
    "description",
    "schema_version",
    "data.how_to_get",
    "model.how_to_get",
}
# What each value of `architecture` shares.
_ARCHITECTURES = {
    "sde": "one encoder for queries and documents",
    "ade": "one encoder for queries and one for documents",
    "ade-spl": "two encoders with a shared projection",
    "ade-ste": "two encoders that shared their token embeddings in training",
    "ade-fte": "two encoders with the same frozen token embeddings",
}


def header(card: "ModelCard", format: str) -> str:
    """Return the YAML header between its two lines of dashes."""
    fields: dict[str, Any] = {
        "library_name": LIBRARIES[format],
        "pipeline_tag": "sentence-similarity",
        "tags": [*dict.fromkeys((LIBRARIES[format], *_TAGS))],
        "language": card.language,
        "license": card.licence or "",
        "base_model": card.base_model,
        "datasets": list(card.datasets),
        "metrics": list(_metric_names(card)),
    }
    lines = ["---"]
    for name, value in fields.items():
        if isinstance(value, list):
            if value:
                lines.append(f"{name}:")
            lines += [f"- {_scalar(item)}" for item in value]
        elif value:
            lines.append(f"{name}: {_scalar(value)}")
    return "\n".join([*lines, "---"])


def summary(card: "ModelCard", model: "DualEncoder") -> str:
    """Return the heading, and what the model is made of."""
    tower, encoder = model.query_tower, model.query_tower.encoder
    size = EncoderSize.of_encoder(encoder)
    kind = "gated " if size.use_gated_activation else ""
    parameters = {
        id(v): int(v.value.shape.num_elements()) for v in model.weights
    }
    projection = "none"
    if tower.projection is not None:
        bias = "with" if tower.projection.use_bias else "without"
        projection = f"{size.hidden_dim} to {model.dim}, {bias} bias"
    rows = {
        "Architecture": f"`{model.architecture}`, "
        f"{_ARCHITECTURES[model.architecture]}",
        "Encoder": f"T5, {size.num_layers} layers of {size.num_heads} heads, "
        f"width {size.hidden_dim}, {kind}{size.activation} of "
        f"{size.intermediate_dim}",
        "Projection": projection,
        "Embedding": f"{model.dim} dimensions, mean of the tokens, "
        + ("unit length" if tower.normalize else "not normalised"),
        "Parameters": f"{sum(parameters.values()):,}",
        "Weights": f"float32; run in {encoder.dtype_policy.name} before export",
        "Fingerprint": f"`{model.fingerprint()}`",
    }
    for name, preprocessor in (
        ("Queries", model.query_preprocessor),
        ("Documents", model.document_preprocessor),
    ):
        prefix = preprocessor.prefix
        rows[name] = f"{preprocessor.sequence_length} tokens, " + (
            f"after the prefix `{_one_line(json.dumps(prefix))}`"
            if prefix
            else "no prefix"
        )
    paragraphs = [
        f"# {_one_line(card.title)}",
        card.description.strip(),
        "Maps queries and documents to one space, in which a query lies near "
        "the documents that answer it.",
        _table(["", ""], [[name, value] for name, value in rows.items()]),
    ]
    return "\n\n".join(part for part in paragraphs if part)


def usage(model: "DualEncoder", format: str) -> str:
    """Return code that loads the folder and scores a pair of texts."""
    code = usage_code(model, format)
    return f"## Usage\n\n```python\n{code}\n```"


def training(card: "ModelCard") -> str:
    """Return the values of the recipe."""
    parts = ["## Training"]
    if card.base_model:
        parts.append(f"Started from `{_one_line(card.base_model)}`.")
    if card.datasets:
        names = ", ".join(_one_line(name) for name in card.datasets)
        parts.append(f"Data: {names}.")
    if card.command:
        parts.append(f"```\n{card.command.strip()}\n```")
    rows = [
        [f"`{key}`", _shown(key, value)]
        for key, value in _flat(card.recipe)
        if key not in _LEFT_OUT and value not in ("", None, [], ())
    ]
    if rows:
        parts.append(_table(["recipe", "value"], rows))
    if len(parts) == 1:
        parts.append("How the model was trained is not recorded.")
    return "\n\n".join(parts)


def evaluation(card: "ModelCard") -> str:
    """Return one table per split."""
    parts = ["## Evaluation"]
    splits = dict.fromkeys(s for row in card.metrics.values() for s in row)
    for split in splits:
        part = {
            n: row[split] for n, row in card.metrics.items() if split in row
        }
        names = [*dict.fromkeys(m for row in part.values() for m in row)]
        rows = [
            [name, *[f"{row[m]:.4f}" if m in row else "" for m in names]]
            for name, row in part.items()
        ]
        parts += [f"### {_one_line(split)}", _table(["", *names], rows)]
    if not splits:
        parts.append("The model has not been evaluated.")
        return "\n\n".join(parts)
    trained = (card.recipe.get("loss") or {}).get("name")
    if trained in card.metrics and len(card.metrics) > 1:
        parts.insert(
            1,
            f"The row `{trained}` is this model; the others are what the same "
            "run compared it with. Every query searched the whole collection.",
        )
    return "\n\n".join(parts)


def limits(model: "DualEncoder", format: str) -> str:
    """Return where the folder and `tf_samtone` can differ."""
    lengths = [
        model.query_preprocessor.sequence_length,
        model.document_preprocessor.sequence_length,
    ]
    is_shared = model.query_tower is model.document_tower
    items = [
        "Texts are cut at the number of tokens above; what follows has no "
        "part in the embedding.",
        "The literal texts `<pad>`, `</s>` and `<unk>` are special tokens to "
        "`transformers`, and ordinary text to `tf_samtone`.",
        "Two segmentations of a word can have the same score; libraries then "
        "choose differently, and embeddings differ a little.",
    ]
    if (
        is_shared
        and format == "sentence_transformers"
        and len(set(lengths)) > 1
    ):
        items.append(
            f"This folder has one limit for both sides, {max(lengths)} tokens: "
            f"`tf_samtone` cuts queries at {lengths[0]} and documents at "
            f"{lengths[1]}."
        )
    if format == "hugging_face" and model.query_tower.projection is not None:
        items.append(
            "`T5EncoderModel` has no projection: it lies in "
            "`projection.safetensors`, and the code above applies it."
        )
    if not is_shared:
        items.append(
            "Queries and documents have encoders of their own, which give "
            "different embeddings of one text."
        )
    if format == "sentence_transformers":
        version = 3 if is_shared else 5
        items.append(f"Needs sentence-transformers {version} or newer.")
    return "## Limits\n\n" + "\n".join(f"- {item}" for item in items)


def licence(card: "ModelCard") -> str:
    """Return licence and references."""
    text = (
        f"Licence: {_one_line(card.licence)}."
        if card.licence
        else "The licences of the base weights and of the training data apply. "
        "Fill in `license` above before publishing."
    )
    return (
        f"## Licence and citation\n\n{text}\n\n"
        "- Ni et al., 2021, Large Dual Encoders Are Generalizable Retrievers, "
        "https://arxiv.org/abs/2112.07899\n"
        "- Moiseev et al., 2023, SamToNe: Improving Contrastive Loss for Dual "
        "Encoder Retrieval Models with Same Tower Negatives, "
        "https://arxiv.org/abs/2306.02516"
    )


def _metric_names(card: "ModelCard") -> dict[str, None]:
    return dict.fromkeys(
        metric
        for row in card.metrics.values()
        for values in row.values()
        for metric in values
    )


def _scalar(text: str) -> str:
    """Quote what YAML would take for something else than a string."""
    plain = re.fullmatch(r"[A-Za-z][\w./-]*", text)
    if plain and text.lower() not in _NOT_PLAIN:
        return text
    return json.dumps(text, ensure_ascii=False)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _table(head: list[str], rows: list[list[str]]) -> str:
    def line(cells: list[str]) -> str:
        shown = [_one_line(cell).replace("|", "\\|") for cell in cells]
        return f"| {' | '.join(shown)} |"

    rule = ["---"] * len(head)
    return "\n".join([line(head), line(rule), *[line(row) for row in rows]])


def _flat(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flat(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list | tuple) and any(
        isinstance(item, dict) for item in value
    ):
        for i, item in enumerate(value):
            yield from _flat(item, f"{key}[{i}]")
    else:
        yield key, value


def _shown(key: str, value: Any) -> str:
    if key in _PATHS:
        return pathlib.PurePath(value).name
    return value if isinstance(value, str) else json.dumps(value)
