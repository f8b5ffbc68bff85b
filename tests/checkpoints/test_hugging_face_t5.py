"""Tests of reading Hugging Face T5 folders."""

import json
import pathlib
import shutil

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tf_samtone.checkpoints import (
    is_hugging_face_folder,
    load_hugging_face_t5,
    read_hugging_face_config,
)
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
)

DATA = pathlib.Path(__file__).parents[1] / "data_files"
WO = "encoder.block.1.layer.1.DenseReluDense.wo.weight"
NORM = "encoder.final_layer_norm.weight"


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """Return a copy of the tiny gated folder that a test may spoil."""
    return shutil.copytree(DATA / "t5_tiny_gated_gelu", tmp_path / "t5")


@pytest.fixture
def tensors(folder) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


def change_config(folder: pathlib.Path, **changes) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, **changes}))


def save(folder: pathlib.Path, tensors: dict[str, np.ndarray]) -> None:
    save_file(tensors, folder / "model.safetensors")


def save_shards(folder: pathlib.Path, tensors: dict) -> dict[str, str]:
    """Replace the single file by two shards; return the weight map."""
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"a.safetensors": names[:5], "b.safetensors": names[5:]}
    for file_name, members in shards.items():
        save_file({n: tensors[n] for n in members}, folder / file_name)
    weight_map = {n: f for f, members in shards.items() for n in members}
    write_index(folder, weight_map)
    return weight_map


def write_index(folder: pathlib.Path, weight_map: object) -> None:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def output_kernel(encoder) -> np.ndarray:
    return encoder.encoder_transformer_layers[1].output_projector.kernel.numpy()


def test_config_of_t5_1_1_gives_the_arguments():
    arguments = read_hugging_face_config(DATA / "t5_tiny_gated_gelu")
    # The numbers are those in make_t5_goldens.py.
    assert arguments == {
        "vocabulary_size": 384,
        "num_layers": 2,
        "num_heads": 2,
        "hidden_dim": 32,
        "intermediate_dim": 48,
        "key_value_dim": 12,
        "dropout": 0.1,
        "activation": "gelu",
        "use_gated_activation": True,
        "layer_norm_epsilon": 1e-6,
    }


def test_config_of_t5_1_0_is_ungated_relu():
    arguments = read_hugging_face_config(DATA / "t5_tiny_relu")
    assert arguments["activation"] == "relu"
    assert arguments["use_gated_activation"] is False


def test_kernels_are_transposed_and_tables_are_not(folder, tensors):
    encoder = load_hugging_face_t5(folder)
    np.testing.assert_array_equal(output_kernel(encoder), tensors[WO].T)
    np.testing.assert_array_equal(
        encoder.token_embedding.embeddings.numpy(), tensors["shared.weight"]
    )


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16], ids=["fp16", "bf16"]
)
def test_half_precision_files_become_float32_weights(folder, tensors, dtype):
    save(folder, {n: t.astype(dtype) for n, t in tensors.items()})
    kernel = output_kernel(load_hugging_face_t5(folder))
    assert kernel.dtype == np.float32
    expected = tensors[WO].astype(dtype).astype(np.float32).T
    np.testing.assert_array_equal(kernel, expected)


def test_shards_are_read_through_their_index(folder, tensors):
    save_shards(folder, tensors)
    kernel = output_kernel(load_hugging_face_t5(folder))
    np.testing.assert_array_equal(kernel, tensors[WO].T)


def test_decoder_and_head_of_a_full_model_are_left_alone(folder, tensors):
    tensors["decoder.final_layer_norm.weight"] = np.ones(32, np.float32)
    tensors["lm_head.weight"] = np.ones((384, 32), np.float32)
    tensors["encoder.embed_tokens.weight"] = tensors["shared.weight"]
    save(folder, tensors)
    kernel = output_kernel(load_hugging_face_t5(folder))
    np.testing.assert_array_equal(kernel, tensors[WO].T)


def test_embedding_may_be_stored_under_the_encoders_name(folder, tensors):
    table = tensors.pop("shared.weight")
    save(folder, {**tensors, "encoder.embed_tokens.weight": table})
    encoder = load_hugging_face_t5(folder)
    np.testing.assert_array_equal(
        encoder.token_embedding.embeddings.numpy(), table
    )


def test_dtype_reaches_the_encoder(folder):
    encoder = load_hugging_face_t5(folder, dtype="mixed_bfloat16")
    assert encoder.compute_dtype == "bfloat16"
    assert output_kernel(encoder).dtype == np.float32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "umt5"}, "model_type='umt5'"),
        ({"feed_forward_proj": "gated-silu"}, "feed_forward_proj='gated-silu'"),
        ({"feed_forward_proj": "gelu"}, "feed_forward_proj='gelu'"),
        ({"relative_attention_num_buckets": 64}, "num_buckets=64"),
        ({"relative_attention_max_distance": 64}, "max_distance=64"),
    ],
)
def test_models_of_another_kind_are_refused(folder, changes, message):
    change_config(folder, **changes)
    with pytest.raises(MismatchError, match=message):
        load_hugging_face_t5(folder)


@pytest.mark.parametrize("value", [None, 0, "32", 32.0, True], ids=repr)
def test_a_size_must_be_a_positive_integer(folder, value):
    change_config(folder, d_model=value)
    with pytest.raises(CorruptFileError, match="Expected `d_model`"):
        read_hugging_face_config(folder)


@pytest.mark.parametrize("text", ["{", "[1]", "\ufeff{}"], ids=repr)
def test_a_config_that_is_no_json_object_is_refused(folder, text):
    (folder / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(CorruptFileError, match=r"config\.json"):
        load_hugging_face_t5(folder)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(CorruptFileError, match=r"with config\.json"):
        load_hugging_face_t5(tmp_path / "nowhere")


def test_missing_and_surplus_tensors_are_named(folder, tensors):
    del tensors[NORM]
    save(folder, {**tensors, "extra.weight": np.ones(1, np.float32)})
    message = rf"missing=\['{NORM}'\], surplus=\['extra.weight'\]"
    with pytest.raises(MismatchError, match=message):
        load_hugging_face_t5(folder)


def test_weights_of_the_other_feed_forward_are_refused(folder):
    change_config(folder, feed_forward_proj="relu")
    with pytest.raises(MismatchError, match=r"DenseReluDense\.wi_1\.weight"):
        load_hugging_face_t5(folder)


def test_a_tensor_of_another_shape_is_named(folder):
    change_config(folder, vocab_size=400)
    message = r"shared\.weight of shape \(400, 32\).*shape=\(384, 32\)"
    with pytest.raises(MismatchError, match=message):
        load_hugging_face_t5(folder)


def test_integer_weights_are_refused(folder, tensors):
    save(folder, {**tensors, WO: tensors[WO].astype(np.int8)})
    with pytest.raises(InvalidInputError, match=f"{WO} of type I8"):
        load_hugging_face_t5(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
def test_weights_that_are_not_finite_are_refused(folder, tensors, value):
    tensors[WO][0, 0] = value
    save(folder, tensors)
    with pytest.raises(CorruptFileError, match=f"infinity in {WO}"):
        load_hugging_face_t5(folder)


def test_a_truncated_file_is_refused(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(CorruptFileError, match="Expected a safetensors file"):
        load_hugging_face_t5(folder)


def test_pickled_weights_are_refused_with_the_reason(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidInputError, match="can run the code in it"):
        load_hugging_face_t5(folder)


def test_a_folder_without_weights_is_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(CorruptFileError, match="Received: neither"):
        load_hugging_face_t5(folder)


@pytest.mark.parametrize(
    "name",
    ["../a.safetensors", "/a.safetensors", "sub/a.safetensors", "a.bin", 3],
    ids=str,
)
def test_an_index_may_name_files_of_its_folder_only(folder, tensors, name):
    weight_map = save_shards(folder, tensors)
    write_index(folder, {**weight_map, WO: name})
    with pytest.raises(CorruptFileError, match="Expected plain names"):
        load_hugging_face_t5(folder)


@pytest.mark.parametrize("weight_map", [None, {}, ["a"]], ids=repr)
def test_an_index_without_a_map_is_refused(folder, tensors, weight_map):
    save_shards(folder, tensors)
    write_index(folder, weight_map)
    with pytest.raises(CorruptFileError, match="Expected a `weight_map`"):
        load_hugging_face_t5(folder)


def test_a_missing_shard_is_named(folder, tensors):
    save_shards(folder, tensors)
    (folder / "b.safetensors").unlink()
    with pytest.raises(CorruptFileError, match=r"b\.safetensors"):
        load_hugging_face_t5(folder)


def test_a_tensor_that_its_shard_lacks_is_named(folder, tensors):
    weight_map = save_shards(folder, tensors)
    write_index(folder, {**weight_map, "ghost": "a.safetensors"})
    with pytest.raises(CorruptFileError, match=r"without \['ghost'\]"):
        load_hugging_face_t5(folder)


def test_a_tensor_in_two_shards_is_refused(folder, tensors):
    save_shards(folder, tensors)
    first = load_file(folder / "a.safetensors")
    save_file({**first, WO: tensors[WO]}, folder / "a.safetensors")
    with pytest.raises(CorruptFileError, match=f"Expected {WO} in b"):
        load_hugging_face_t5(folder)


def test_a_hugging_face_folder_is_recognised():
    assert is_hugging_face_folder(DATA / "t5_tiny_relu")


@pytest.mark.parametrize(
    "config", [None, '{"registered_name": "keras_hub>T5Backbone"}'], ids=repr
)
def test_other_folders_are_not_recognised(tmp_path, config):
    if config is not None:
        (tmp_path / "config.json").write_text(config)
    assert not is_hugging_face_folder(tmp_path)
