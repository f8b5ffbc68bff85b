"""What a README.md says; its code runs in test_export_parity.py."""

import dataclasses
import json
import re

import pytest

from tf_samtone.checkpoints import ModelCard
from tf_samtone.errors import CorruptFileError, InvalidInputError
from tf_samtone.models import projection_layer

FORMATS = ("sentence_transformers", "hugging_face")
RECIPE = {
    "name": "medquad",
    "description": "Answers questions\nabout diseases.",
    "data": {
        "reader": "beir",
        "path": "/home/someone/data/medquad",
        "how_to_get": "ask around",
    },
    "model": {"preset": "../shared/t5_small", "dropout": 0.0},
    "loss": {"name": "samtone", "temperature": 0.01},
    "stages": [{"name": "train", "steps": 360}],
    "seed": 0,
}
RESULTS = {
    "recipe": "medquad",
    "figures": {
        "bm25": {
            "dev": {"P@1": 0.25, "MRR@10": 0.4},
            "test": {"P@1": 0.26, "MRR@10": 0.41},
        },
        "samtone": {
            "dev": {"P@1": 0.5, "MRR@10": 0.625},
            "test": {"P@1": 0.51, "MRR@10": 0.63},
        },
    },
    "training": {"samtone": {}},
    "seconds": {"samtone": 12.5},
}


@pytest.fixture
def model(make_tiny_dual_encoder):
    return make_tiny_dual_encoder()


@pytest.fixture
def run(tmp_path):
    """An output folder of samtone-train."""
    (tmp_path / "recipe.json").write_text(json.dumps(RECIPE))
    (tmp_path / "results.json").write_text(json.dumps(RESULTS))
    return tmp_path


def header(text: str) -> list[str]:
    """Return the lines of the YAML header."""
    start, body, _ = text.split("---\n", 2)
    assert start == ""
    return body.splitlines()


def section(text: str, name: str) -> str:
    """Return what stands under a heading."""
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[name]


def rows(text: str) -> dict[str, list[str]]:
    """Return the cells of all tables by their first one."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [line.strip("| ").split(" | ") for line in lines]
    return {first: rest for first, *rest in cells}


def test_a_card_may_be_empty(model):
    text = ModelCard().render(model, "sentence_transformers")

    assert header(text) == [
        "library_name: sentence-transformers",
        "pipeline_tag: sentence-similarity",
        "tags:",
        "- sentence-transformers",
        "- sentence-similarity",
        "- feature-extraction",
        "- dual-encoder",
        "- samtone",
    ]
    assert "not recorded" in section(text, "Training")
    assert "has not been evaluated" in section(text, "Evaluation")


def test_the_header_has_what_is_known(model, run):
    card = ModelCard.from_run(run, licence="apache-2.0", language="en")

    text = card.render(model, "hugging_face")

    assert header(text)[-8:] == [
        "language: en",
        "license: apache-2.0",
        "base_model: t5_small",
        "datasets:",
        "- medquad",
        "metrics:",
        '- "P@1"',
        '- "MRR@10"',
    ]
    assert header(text)[0] == "library_name: transformers"


@pytest.mark.parametrize("word", ["no", "On", "true", "3.0", "a: b", "x\ny"])
def test_what_yaml_would_misread_is_quoted(model, word):
    text = ModelCard(language=word).render(model, FORMATS[0])

    assert f"language: {json.dumps(word)}" in header(text)


def test_without_a_licence_the_card_says_what_is_missing(model):
    text = ModelCard().render(model, FORMATS[0])

    assert not any(line.startswith("license") for line in header(text))
    assert "Fill in `license`" in section(text, "Licence and citation")


def test_a_licence_is_named(model):
    text = ModelCard(licence="mit").render(model, FORMATS[0])

    assert "license: mit" in header(text)
    assert "Licence: mit." in section(text, "Licence and citation")


def test_the_summary_describes_the_model(make_tiny_dual_encoder):
    model = make_tiny_dual_encoder("ade-spl", query_prefix="ask: ")

    table = rows(ModelCard(title="A | B").render(model, FORMATS[0]))

    assert table["Architecture"] == [
        "`ade-spl`, two encoders with a shared projection"
    ]
    assert table["Encoder"] == [
        "T5, 1 layers of 2 heads, width 16, gated gelu of 24"
    ]
    assert table["Projection"] == ["16 to 8, without bias"]
    assert table["Queries"] == ['6 tokens, after the prefix `"ask: "`']
    assert table["Documents"] == ["12 tokens, no prefix"]
    assert table["Fingerprint"] == [f"`{model.fingerprint()}`"]
    encoder = model.query_tower.encoder.count_params()
    assert table["Parameters"] == [f"{2 * encoder + 16 * 8:,}"]


def test_title_and_description_come_first(model, run):
    text = ModelCard.from_run(run, title="My\nmodel").render(model, FORMATS[0])

    body = text.split("---\n", 2)[2].strip()
    assert body.startswith(
        "# My model\n\nAnswers questions\nabout diseases.\n\n"
    )


def test_the_recipe_is_shown_without_places_of_a_machine(model, run):
    text = ModelCard.from_run(run).render(model, FORMATS[0])

    table = rows(section(text, "Training"))
    assert table["`stages[0].steps`"] == ["360"]
    assert table["`loss.name`"] == ["samtone"]
    assert table["`seed`"] == ["0"]
    assert table["`model.preset`"] == ["t5_small"]
    assert table["`data.path`"] == ["medquad"]
    assert "someone" not in text
    assert "../shared" not in text
    assert "ask around" not in text


def test_the_command_is_shown(model):
    card = ModelCard(command="samtone-train --recipe=medquad")

    training = section(card.render(model, FORMATS[0]), "Training")

    assert "```\nsamtone-train --recipe=medquad\n```" in training


def test_every_split_has_a_table_of_the_recorded_figures(model, run):
    text = ModelCard.from_run(run).render(model, FORMATS[0])

    evaluation = section(text, "Evaluation")
    _, dev, test = evaluation.split("### ")
    assert "| P@1 | MRR@10 |" in dev
    assert rows(dev)["samtone"] == ["0.5000", "0.6250"]
    assert rows(test)["bm25"] == ["0.2600", "0.4100"]
    assert "The row `samtone` is this model" in evaluation
    recorded = {
        f"{value:.4f}"
        for row in RESULTS["figures"].values()
        for values in row.values()
        for value in values.values()
    }
    assert set(re.findall(r"\d\.\d+", evaluation)) == recorded


@pytest.mark.parametrize("format", FORMATS)
def test_the_same_card_gives_the_same_text(model, run, format):
    texts = {ModelCard.from_run(run).render(model, format) for _ in range(2)}

    assert len(texts) == 1


def test_code_has_the_lengths_and_prefixes(make_tiny_dual_encoder):
    model = make_tiny_dual_encoder("ade", query_prefix='say "x": ')

    usage = section(ModelCard().render(model, "hugging_face"), "Usage")

    assert 'f"{folder}/query", "say \\"x\\": ", 6)' in usage
    assert 'f"{folder}/document", "", 12)' in usage


@pytest.mark.parametrize(
    ("options", "present", "absent"),
    [
        ({}, ["normalize", "projection.safetensors"], ["tanh"]),
        ({"projection_dim": 0}, ["normalize"], ["load_file", "projection"]),
        ({"normalize": False}, ["projection.safetensors"], ["normalize"]),
    ],
)
def test_code_has_the_steps_of_the_model(
    make_tiny_dual_encoder, options, present, absent
):
    model = make_tiny_dual_encoder(**options)

    usage = section(ModelCard().render(model, "hugging_face"), "Usage")

    assert all(word in usage for word in present)
    assert not any(word in usage for word in absent)
    code = usage.split("```python\n")[1].split("```")[0]
    compile(code, "card", "exec")


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_code_has_the_activation(make_tiny_dual_encoder, activation):
    projection = projection_layer(8, activation=activation)
    model = make_tiny_dual_encoder(projection=projection)

    usage = section(ModelCard().render(model, "hugging_face"), "Usage")

    assert f"torch.{activation}(vectors)" in usage


def test_one_limit_for_two_lengths_is_mentioned(model, make_tiny_dual_encoder):
    equal = make_tiny_dual_encoder(query_length=12)

    texts = [ModelCard().render(m, FORMATS[0]) for m in (model, equal)]

    limits = [section(text, "Limits") for text in texts]
    assert "cuts queries at 6 and documents at 12" in limits[0]
    assert "one limit" not in limits[1]


@pytest.mark.parametrize(("architecture", "version"), [("sde", 3), ("ade", 5)])
def test_the_oldest_version_is_named(
    make_tiny_dual_encoder, architecture, version
):
    model = make_tiny_dual_encoder(architecture)

    limits = section(ModelCard().render(model, FORMATS[0]), "Limits")

    assert f"Needs sentence-transformers {version} or newer" in limits


def test_an_unknown_format_is_refused(model):
    with pytest.raises(InvalidInputError, match="format='onnx'"):
        ModelCard().render(model, "onnx")


@pytest.mark.parametrize("name", ["recipe.json", "results.json"])
def test_a_folder_without_a_run_is_refused(run, name):
    (run / name).unlink()

    with pytest.raises(InvalidInputError, match=f"without {name}"):
        ModelCard.from_run(run)


@pytest.mark.parametrize(
    "figures",
    [None, {}, [], {"a": 1}, {"a": {"b": {"c": "0.5"}}}, {"a": {"b": 2}}],
)
def test_figures_of_another_shape_are_refused(run, figures):
    (run / "results.json").write_text(json.dumps({"figures": figures}))

    with pytest.raises(CorruptFileError, match="figures="):
        ModelCard.from_run(run)


def test_a_malformed_recipe_is_refused(run):
    (run / "recipe.json").write_text("{")

    with pytest.raises(CorruptFileError, match=r"recipe\.json"):
        ModelCard.from_run(run)


def test_a_card_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ModelCard().title = "other"
