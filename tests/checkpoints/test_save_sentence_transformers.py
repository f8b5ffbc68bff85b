"""sentence-transformers folders of dual encoders; see test_export_parity.py.

What both exporters refuse is in test_save_hugging_face_t5.py.
"""

import json
import pathlib

import numpy as np
import pytest
from safetensors.numpy import load_file

from tf_samtone.checkpoints import (
    load_hugging_face_t5,
    save_sentence_transformers,
)
from tf_samtone.models import DualEncoder, projection_layer

ARCHITECTURES = ("sde", "ade", "ade-spl", "ade-ste", "ade-fte")
TEXTS = ["a question about whales", "", "word " * 20]


def read(path: pathlib.Path):
    return json.loads(path.read_text(encoding="utf-8"))


def modules(folder: pathlib.Path) -> list[tuple[str, str]]:
    """Return the last part of the type, and the path."""
    rows = read(folder / "modules.json")
    assert [row["idx"] for row in rows] == list(range(len(rows)))
    return [(row["type"].split(".")[-1], row["path"]) for row in rows]


def set_apart(model: DualEncoder) -> None:
    """Give every weight a value of its own, the same in every run."""
    generator = np.random.default_rng(0)
    for weight in model.weights:
        noise = generator.standard_normal(weight.shape)
        weight.assign(weight.numpy() + 0.1 * noise)


def test_one_tower_is_a_list_of_modules(make_tiny_dual_encoder, tmp_path):
    save_sentence_transformers(make_tiny_dual_encoder(), tmp_path)

    assert modules(tmp_path) == [
        ("Transformer", ""),
        ("Pooling", "1_Pooling"),
        ("Dense", "2_Dense"),
        ("Normalize", "3_Normalize"),
    ]
    assert {path.name for path in tmp_path.iterdir()} == {
        "1_Pooling",
        "2_Dense",
        "3_Normalize",
        "README.md",
        "config.json",
        "config_sentence_transformers.json",
        "model.safetensors",
        "modules.json",
        "sentence_bert_config.json",
        "special_tokens_map.json",
        "spiece.model",
        "tf_samtone.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"projection_dim": 0}, ["Transformer", "Pooling", "Normalize"]),
        ({"normalize": False}, ["Transformer", "Pooling", "Dense"]),
        (
            {"projection_dim": 0, "normalize": False},
            ["Transformer", "Pooling"],
        ),
    ],
)
def test_modules_that_do_nothing_are_left_out(
    make_tiny_dual_encoder, tmp_path, options, expected
):
    save_sentence_transformers(make_tiny_dual_encoder(**options), tmp_path)

    assert [kind for kind, _ in modules(tmp_path)] == expected


def test_pooling_is_the_mean_of_the_encoders_width(
    make_tiny_dual_encoder, tmp_path
):
    save_sentence_transformers(make_tiny_dual_encoder(), tmp_path)

    assert read(tmp_path / "1_Pooling" / "config.json") == {
        "word_embedding_dimension": 16,
        "pooling_mode_cls_token": False,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        (None, "torch.nn.modules.linear.Identity"),
        ("tanh", "torch.nn.modules.activation.Tanh"),
        ("relu", "torch.nn.modules.activation.ReLU"),
    ],
)
@pytest.mark.parametrize("use_bias", [False, True], ids=["bare", "bias"])
def test_the_projection_is_a_dense_module(
    make_tiny_dual_encoder, tmp_path, activation, name, use_bias
):
    projection = projection_layer(8, use_bias=use_bias, activation=activation)
    model = make_tiny_dual_encoder(projection=projection)
    set_apart(model)

    save_sentence_transformers(model, tmp_path)

    assert read(tmp_path / "2_Dense" / "config.json") == {
        "in_features": 16,
        "out_features": 8,
        "bias": use_bias,
        "activation_function": name,
    }
    tensors = load_file(tmp_path / "2_Dense" / "model.safetensors")
    np.testing.assert_array_equal(
        tensors.pop("linear.weight"), projection.kernel.numpy().T
    )
    assert list(tensors) == ["linear.bias"] * use_bias


def test_one_tower_has_the_longer_of_the_two_lengths(
    make_tiny_dual_encoder, tmp_path
):
    save_sentence_transformers(make_tiny_dual_encoder(), tmp_path)

    assert read(tmp_path / "sentence_bert_config.json") == {
        "max_seq_length": 12,
        "do_lower_case": False,
    }
    tokenizer = read(tmp_path / "tokenizer_config.json")
    assert tokenizer["model_max_length"] == 12


def test_two_towers_are_routes_with_their_own_lengths(
    make_tiny_dual_encoder, tmp_path
):
    model = make_tiny_dual_encoder("ade")
    set_apart(model)

    save_sentence_transformers(model, tmp_path)

    router = read(tmp_path / "router_config.json")
    assert modules(tmp_path) == [
        ("Router", ""),
        ("Normalize", "1_Normalize"),
    ]
    assert router["parameters"] == {
        "default_route": "document",
        "allow_empty_key": True,
    }
    for name, length in (("query", 6), ("document", 12)):
        paths = router["structure"][name]
        assert paths == [
            f"{name}_0_Transformer",
            f"{name}_1_Pooling",
            f"{name}_2_Dense",
        ]
        assert [router["types"][path].split(".")[-1] for path in paths] == [
            "Transformer",
            "Pooling",
            "Dense",
        ]
        sizes = read(tmp_path / paths[0] / "sentence_bert_config.json")
        assert sizes["max_seq_length"] == length
        tower = getattr(model, f"{name}_tower")
        encoder = load_hugging_face_t5(tmp_path / paths[0])
        for ours, theirs in zip(
            tower.encoder.weights, encoder.weights, strict=True
        ):
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
        dense = load_file(tmp_path / paths[2] / "model.safetensors")
        np.testing.assert_array_equal(
            dense["linear.weight"], tower.projection.kernel.numpy().T
        )


def test_a_shared_projection_follows_the_router(
    make_tiny_dual_encoder, tmp_path
):
    save_sentence_transformers(make_tiny_dual_encoder("ade-spl"), tmp_path)

    assert modules(tmp_path) == [
        ("Router", ""),
        ("Dense", "1_Dense"),
        ("Normalize", "2_Normalize"),
    ]
    for paths in read(tmp_path / "router_config.json")["structure"].values():
        assert len(paths) == 2


def test_type_names_are_those_that_every_version_knows(
    make_tiny_dual_encoder, tmp_path
):
    save_sentence_transformers(make_tiny_dual_encoder("ade"), tmp_path)

    types = [
        *[row["type"] for row in read(tmp_path / "modules.json")],
        *read(tmp_path / "router_config.json")["types"].values(),
    ]
    assert {name.rpartition(".")[0] for name in types} == {
        "sentence_transformers.models"
    }


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"query_prefix": "ask: "}, {"query": "ask: ", "document": ""}),
        (
            {"query_prefix": "ask: ", "document_prefix": "read: "},
            {"query": "ask: ", "document": "read: "},
        ),
    ],
)
def test_prefixes_are_prompts(
    make_tiny_dual_encoder, tmp_path, options, expected
):
    save_sentence_transformers(make_tiny_dual_encoder(**options), tmp_path)

    config = read(tmp_path / "config_sentence_transformers.json")
    assert config["prompts"] == expected


@pytest.mark.parametrize(
    ("normalize", "expected"), [(True, "cosine"), (False, "dot")]
)
def test_scores_are_those_of_similarity(
    make_tiny_dual_encoder, tmp_path, normalize, expected
):
    model = make_tiny_dual_encoder(normalize=normalize)

    save_sentence_transformers(model, tmp_path)

    config = read(tmp_path / "config_sentence_transformers.json")
    assert config["similarity_fn_name"] == expected


def test_what_the_format_has_no_place_for_is_in_a_file_of_ours(
    make_tiny_dual_encoder, tmp_path
):
    model = make_tiny_dual_encoder("ade-ste")

    save_sentence_transformers(model, tmp_path)

    assert read(tmp_path / "tf_samtone.json") == {
        "format_version": 1,
        "architecture": "ade-ste",
        "query_length": 6,
        "document_length": 12,
        "fingerprint": model.fingerprint(),
    }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_model_comes_back_bit_for_bit(
    make_tiny_dual_encoder, tmp_path, architecture
):
    model = make_tiny_dual_encoder(
        architecture, query_prefix="ask: ", document_prefix="read: "
    )
    set_apart(model)
    save_sentence_transformers(model, tmp_path)

    loaded = DualEncoder.from_preset(str(tmp_path))

    assert loaded.architecture == architecture
    assert loaded.fingerprint() == model.fingerprint()
    for name in ("encode_queries", "encode_documents"):
        np.testing.assert_array_equal(
            getattr(loaded, name)(TEXTS), getattr(model, name)(TEXTS)
        )


@pytest.mark.parametrize(
    "options",
    [
        {"projection_dim": 0},
        {"normalize": False},
        {"architecture": "ade-spl", "projection_dim": 0},
        {"architecture": "ade", "projection_dim": 0, "normalize": False},
    ],
)
def test_a_model_without_head_comes_back_bit_for_bit(
    make_tiny_dual_encoder, tmp_path, options
):
    model = make_tiny_dual_encoder(**options)
    set_apart(model)
    save_sentence_transformers(model, tmp_path)

    loaded = DualEncoder.from_preset(str(tmp_path))

    assert loaded.fingerprint() == model.fingerprint()


def test_a_projection_with_bias_and_activation_comes_back(
    make_tiny_dual_encoder, tmp_path
):
    projection = projection_layer(8, use_bias=True, activation="tanh")
    model = make_tiny_dual_encoder("ade", projection=projection)
    set_apart(model)
    save_sentence_transformers(model, tmp_path)

    loaded = DualEncoder.from_preset(str(tmp_path))

    assert loaded.fingerprint() == model.fingerprint()
