"""Hugging Face folders of dual encoders."""

import hashlib
import json
import pathlib

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file

from tf_samtone.checkpoints import (
    load_hugging_face_t5,
    save_hugging_face_t5,
    save_sentence_transformers,
)
from tf_samtone.errors import InvalidInputError, OutputExistsError
from tf_samtone.models import DualEncoder, projection_layer

FILES = {
    "README.md",
    "config.json",
    "model.safetensors",
    "projection.safetensors",
    "special_tokens_map.json",
    "spiece.model",
    "tokenizer.json",
    "tokenizer_config.json",
}
SAVERS = pytest.mark.parametrize(
    "save", [save_hugging_face_t5, save_sentence_transformers]
)


def read(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def digests(folder: pathlib.Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(
            path.read_bytes()
        ).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def assert_equal_weights(encoder, other) -> None:
    pairs = zip(encoder.weights, other.weights, strict=True)
    for ours, theirs in pairs:
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


@pytest.fixture
def model(make_tiny_dual_encoder) -> DualEncoder:
    return make_tiny_dual_encoder()


def test_one_tower_is_one_folder(model, tmp_path):
    save_hugging_face_t5(model, tmp_path)

    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_two_towers_are_two_folders(make_tiny_dual_encoder, tmp_path):
    save_hugging_face_t5(make_tiny_dual_encoder("ade"), tmp_path)

    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"README.md", "query", "document"}
    for name in ("query", "document"):
        inside = {path.name for path in (tmp_path / name).iterdir()}
        assert inside == FILES - {"README.md"}


def test_the_config_has_the_sizes_of_the_encoder(model, tmp_path):
    save_hugging_face_t5(model, tmp_path)

    assert read(tmp_path / "config.json") == {
        "architectures": ["T5EncoderModel"],
        "d_ff": 24,
        "d_kv": 6,
        "d_model": 16,
        "dense_act_fn": "gelu_new",
        "dropout_rate": 0.1,
        "eos_token_id": 1,
        "feed_forward_proj": "gated-gelu",
        "is_encoder_decoder": False,
        "is_gated_act": True,
        "layer_norm_epsilon": 1e-6,
        "model_type": "t5",
        "num_heads": 2,
        "num_layers": 1,
        "pad_token_id": 0,
        "relative_attention_max_distance": 128,
        "relative_attention_num_buckets": 32,
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "use_cache": False,
        "vocab_size": 384,
    }


@pytest.mark.parametrize(
    ("activation", "gated", "expected"),
    [
        ("relu", False, "relu"),
        ("relu", True, "gated-relu"),
        ("gelu", False, "gelu_new"),
        ("gelu", True, "gated-gelu"),
    ],
)
def test_every_kind_of_encoder_comes_back_bit_for_bit(
    make_tiny_encoder, make_tiny_dual_encoder, tmp_path, activation, gated,
    expected,
):  # fmt: skip
    encoder = make_tiny_encoder(
        activation=activation, use_gated_activation=gated, dropout=0.25
    )

    save_hugging_face_t5(make_tiny_dual_encoder(encoder=encoder), tmp_path)

    loaded = load_hugging_face_t5(tmp_path)
    assert read(tmp_path / "config.json")["feed_forward_proj"] == expected
    assert loaded.activation == activation
    assert loaded.use_gated_activation is gated
    assert loaded.dropout == 0.25
    assert_equal_weights(encoder, loaded)


def test_every_tower_comes_back_bit_for_bit(make_tiny_dual_encoder, tmp_path):
    model = make_tiny_dual_encoder("ade")
    norm = model.document_tower.encoder.encoder_layer_norm.weight
    norm.assign(norm.numpy() * 2)

    save_hugging_face_t5(model, tmp_path)

    for name in ("query", "document"):
        assert_equal_weights(
            getattr(model, f"{name}_tower").encoder,
            load_hugging_face_t5(tmp_path / name),
        )


def test_kernels_are_stored_the_torch_way_round(model, tmp_path):
    save_hugging_face_t5(model, tmp_path)

    tensors = load_file(tmp_path / "model.safetensors")
    attention = model.query_tower.encoder.encoder_transformer_layers[0]
    np.testing.assert_array_equal(
        tensors["encoder.block.0.layer.0.SelfAttention.q.weight"],
        attention.self_attention.query_projector.kernel.numpy().T,
    )
    assert {value.dtype for value in tensors.values()} == {np.dtype("f4")}


def test_the_projection_is_beside_the_encoder(make_tiny_dual_encoder, tmp_path):
    projection = projection_layer(8, use_bias=True, activation="tanh")
    model = make_tiny_dual_encoder(projection=projection)
    projection.bias.assign(np.arange(8.0))

    save_hugging_face_t5(model, tmp_path)

    tensors = load_file(tmp_path / "projection.safetensors")
    assert set(tensors) == {"linear.weight", "linear.bias"}
    np.testing.assert_array_equal(
        tensors["linear.weight"], projection.kernel.numpy().T
    )
    np.testing.assert_array_equal(tensors["linear.bias"], np.arange(8.0))


def test_no_projection_has_no_file(make_tiny_dual_encoder, tmp_path):
    save_hugging_face_t5(make_tiny_dual_encoder(projection_dim=0), tmp_path)

    assert not (tmp_path / "projection.safetensors").exists()


def test_a_model_that_computes_in_bfloat16_is_stored_in_float32(
    make_tiny_encoder, make_tiny_dual_encoder, tmp_path
):
    encoder = make_tiny_encoder(dtype="mixed_bfloat16")

    save_hugging_face_t5(make_tiny_dual_encoder(encoder=encoder), tmp_path)

    assert_equal_weights(encoder, load_hugging_face_t5(tmp_path, "float32"))


def test_weights_above_the_limit_are_split(model, tmp_path):
    save_hugging_face_t5(model, tmp_path, max_shard_bytes=4000)

    index = read(tmp_path / "model.safetensors.index.json")
    stored = {
        name: path.name
        for path in tmp_path.glob("model-*.safetensors")
        for name in load_file(path)
    }
    sizes = [
        sum(value.nbytes for value in load_file(path).values())
        for path in sorted(tmp_path.glob("model-*.safetensors"))
    ]
    assert index["weight_map"] == stored
    assert index["metadata"]["total_size"] == sum(sizes)
    # The table of embeddings is too large for any file, and alone in one.
    assert sizes[0] == 384 * 16 * 4
    assert max(sizes[1:]) <= 4000
    assert f"model-00001-of-{len(sizes):05d}.safetensors" in stored.values()
    assert not (tmp_path / "model.safetensors").exists()
    assert_equal_weights(
        model.query_tower.encoder, load_hugging_face_t5(tmp_path)
    )


@pytest.mark.parametrize("limit", [0, -1, 1.5, True])
def test_a_limit_that_is_no_size_is_refused(model, tmp_path, limit):
    with pytest.raises(InvalidInputError, match="max_shard_bytes"):
        save_hugging_face_t5(model, tmp_path, max_shard_bytes=limit)


@SAVERS
@pytest.mark.parametrize("architecture", ["sde", "ade-spl"])
def test_the_same_model_gives_the_same_bytes(
    make_tiny_dual_encoder, tmp_path, save, architecture
):
    model = make_tiny_dual_encoder(architecture)

    save(model, tmp_path / "a")
    save(model, tmp_path / "b")

    assert digests(tmp_path / "a") == digests(tmp_path / "b")


@SAVERS
def test_a_folder_in_use_is_refused_and_left_alone(model, tmp_path, save):
    (tmp_path / "kept").write_text("mine")

    with pytest.raises(OutputExistsError, match="already holds files"):
        save(model, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


@SAVERS
def test_a_folder_in_use_is_replaced_when_asked_to(model, tmp_path, save):
    (tmp_path / "old").write_text("old")

    save(model, tmp_path, overwrite=True)

    assert not (tmp_path / "old").exists()
    assert (tmp_path / "config.json").is_file()


@SAVERS
def test_a_failed_export_leaves_nothing_behind(
    model, tmp_path, save, monkeypatch
):
    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(
        "tf_samtone.checkpoints._encoder_folder.write_foreign_tokenizer", fail
    )

    with pytest.raises(OSError, match="disk full"):
        save(model, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@SAVERS
@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
def test_a_weight_that_is_not_finite_is_refused(model, tmp_path, save, value):
    model.query_tower.projection.kernel.assign(np.full((16, 8), value))

    with pytest.raises(InvalidInputError, match=r"NaN or infinity.*kernel"):
        save(model, tmp_path / "new")
    assert list(tmp_path.iterdir()) == []


@SAVERS
def test_anything_but_a_dual_encoder_is_refused(tmp_path, save):
    with pytest.raises(InvalidInputError, match="Received: Sequential"):
        save(keras.Sequential(), tmp_path / "new")


@SAVERS
def test_an_activation_without_a_name_there_is_refused(
    make_tiny_dual_encoder, tmp_path, save
):
    projection = projection_layer(8, activation="softsign")
    model = make_tiny_dual_encoder(projection=projection)

    with pytest.raises(InvalidInputError, match="activation='softsign'"):
        save(model, tmp_path / "new")


@SAVERS
def test_an_encoder_of_another_kind_is_refused(
    model, tmp_path, save, monkeypatch
):
    monkeypatch.setattr(model.query_tower, "encoder", keras.layers.Identity())

    with pytest.raises(InvalidInputError, match="Received: Identity"):
        save(model, tmp_path / "new")
