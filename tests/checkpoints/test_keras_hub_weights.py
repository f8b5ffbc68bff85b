"""Tests of reading Keras's weight files, part by part."""

import pathlib
import shutil

import h5py
import keras
import numpy as np
import pytest
from t5_folders import write_json

from tf_samtone.checkpoints import load_keras_hub_t5
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.errors import CorruptFileError, InvalidInputError

FILE = "model.weights.h5"
INDEX = "model.weights.json"
TABLE = "layers/embedding/vars/0"
KERNEL = "layers/dense/vars/0"
BIAS = "layers/dense/vars/1"
SHAPES = {TABLE: (9, 4), KERNEL: (3, 5), BIAS: (5,)}


def values() -> dict[str, np.ndarray]:
    """Return numbers that half precision has to round."""
    generator = np.random.default_rng(0)
    return {
        name: generator.normal(size=shape).astype(np.float32)
        for name, shape in SHAPES.items()
    }


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return what is left of float32 numbers in another float type."""
    if dtype != "bfloat16":
        return array.astype(dtype).astype(np.float32)
    # Half an upper half more, and one less where the last bit is even.
    bits = array.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


def write(path: pathlib.Path, tensors: dict, dtype: str = "float32") -> None:
    """Write a file as Keras does: bfloat16 as two opaque bytes and a mark."""
    with h5py.File(path, "w") as file:
        for name, array in tensors.items():
            if dtype == "bfloat16":
                upper = rounded(array, dtype).view("<u4") >> 16
                stored = upper.astype("<u2").view("V2")
            else:
                stored = array.astype(dtype)
            file[name] = stored
            if dtype == "bfloat16":
                file[name].attrs["dtype"] = dtype


def write_shards(folder: pathlib.Path, dtype: str = "float32") -> None:
    """Write the table to a.h5, the rest to b.h5."""
    tensors = values()
    write(folder / "a.h5", {TABLE: tensors.pop(TABLE)}, dtype)
    write(folder / "b.h5", tensors, dtype)
    write_index(folder, {"/layers/embedding": "a.h5", "/layers/dense": "b.h5"})


def write_index(folder: pathlib.Path, weight_map: object) -> None:
    write_json(folder / INDEX, {"metadata": {}, "weight_map": weight_map})


@pytest.fixture
def shards(tmp_path) -> pathlib.Path:
    """Return a folder of shards that a test may spoil."""
    write_shards(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def keras_shards(make_tiny_encoder, tmp_path_factory):
    """Return an encoder, and the shards that KerasHub wrote of it."""
    encoder = make_tiny_encoder(num_layers=1)
    folder = tmp_path_factory.mktemp("shards") / "preset"
    # In GiB: room for the table of embeddings, and then some.
    encoder.save_to_preset(str(folder), max_shard_size=25e3 / 2**30)
    return encoder, folder


# === What is read ===


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("is_sharded", [False, True], ids=["one", "shards"])
def test_tensors_are_read_as_float32(tmp_path, dtype, is_sharded):
    if is_sharded:
        write_shards(tmp_path, dtype)
    else:
        write(tmp_path / FILE, values(), dtype)
    weights = KerasHubWeights(tmp_path)
    assert weights.path.name == (INDEX if is_sharded else FILE)
    assert weights.shapes == SHAPES
    for name, expected in values().items():
        actual = weights.read_rows(name, 0, len(expected))
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual, rounded(expected, dtype))


@pytest.mark.parametrize("name", [TABLE, BIAS])
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (2, 5), (4, 5), (0, 5)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_rows_are_those_of_the_whole(tmp_path, name, start, stop, dtype):
    write(tmp_path / FILE, values(), dtype)
    rows = KerasHubWeights(tmp_path).read_rows(name, start, stop)
    expected = rounded(values()[name], dtype)[start:stop]
    np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_what_keras_writes_is_read(tmp_path, dtype):
    model = keras.Sequential([keras.layers.Dense(5, dtype=dtype)])
    model.build((None, 3))
    model.save_weights(tmp_path / FILE)
    kernel = keras.ops.cast(model.layers[0].kernel, "float32").numpy()
    rows = KerasHubWeights(tmp_path).read_rows(KERNEL, 0, 3)
    np.testing.assert_array_equal(rows, kernel)


def test_other_stems_name_other_files(tmp_path):
    write(tmp_path / "task.weights.h5", values())
    weights = KerasHubWeights(tmp_path, stem="task")
    assert weights.path == tmp_path / "task.weights.h5"
    assert weights.shapes == SHAPES


def test_a_single_file_goes_before_an_index(shards):
    write(shards / FILE, {KERNEL: values()[KERNEL]})
    assert KerasHubWeights(shards).shapes == {KERNEL: (3, 5)}


# === Shards ===


def test_shards_that_keras_hub_writes_are_read(keras_shards):
    encoder, folder = keras_shards
    assert not (folder / FILE).exists()
    assert len(list(folder.glob("model_*.h5"))) > 1
    copy = load_keras_hub_t5(folder)
    for actual, expected in zip(copy.weights, encoder.weights, strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_the_variables_of_a_layer_may_straddle_two_shards(tmp_path):
    for file, name in (("a.h5", KERNEL), ("b.h5", BIAS)):
        write(tmp_path / file, {name: values()[name]})
    write_index(tmp_path, {"/layers/dense/vars": ["a.h5", "b.h5"]})
    weights = KerasHubWeights(tmp_path)
    assert weights.shapes == {KERNEL: (3, 5), BIAS: (5,)}
    np.testing.assert_array_equal(weights.read_rows(BIAS, 0, 5), values()[BIAS])


def test_files_that_the_index_does_not_name_are_left_alone(shards):
    (shards / "c.h5").write_bytes(b"not HDF5")
    assert KerasHubWeights(shards).shapes == SHAPES


def test_a_missing_shard_is_named(shards):
    (shards / "b.h5").unlink()
    with pytest.raises(CorruptFileError, match=r"HDF5 file at .*b\.h5"):
        KerasHubWeights(shards)


def test_a_shard_that_keras_hub_wrote_is_missed(keras_shards, tmp_path):
    folder = shutil.copytree(keras_shards[1], tmp_path / "copy")
    last = max(folder.glob("model_*.h5"))
    last.unlink()
    with pytest.raises(CorruptFileError, match=last.name):
        load_keras_hub_t5(folder)


def test_a_tensor_in_two_shards_is_refused(shards):
    write(shards / "b.h5", values())
    message = f"{TABLE} in one shard.*a.h5 and in b.h5"
    with pytest.raises(CorruptFileError, match=message):
        KerasHubWeights(shards)


@pytest.mark.parametrize(
    "name",
    [
        "../a.h5",
        "/a.h5",
        "folder/a.h5",
        "..",
        "",
        "a.txt",
        "a.h5/",
        3,
        None,
        ["a.h5", "../b.h5"],
        [["a.h5"]],
    ],
    ids=repr,
)
def test_shards_are_plain_names_of_h5_files(shards, name):
    # A valid file where the path would lead to.
    shutil.copy(shards / "a.h5", shards.parent / "a.h5")
    write_index(shards, {"/layers/embedding": name, "/layers/dense": "b.h5"})
    with pytest.raises(CorruptFileError, match=r"plain names of \.h5 files"):
        KerasHubWeights(shards)


@pytest.mark.parametrize("weight_map", [{}, [], None, "a.h5", 3], ids=repr)
def test_an_index_without_a_weight_map_is_refused(shards, weight_map):
    write_index(shards, weight_map)
    with pytest.raises(CorruptFileError, match="Received: weight_map="):
        KerasHubWeights(shards)


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff"], ids=repr)
def test_an_index_that_is_no_json_object_is_refused(shards, text):
    (shards / INDEX).write_text(text, encoding="latin-1")
    with pytest.raises(CorruptFileError, match=INDEX):
        KerasHubWeights(shards)


# === Damage ===


def test_a_folder_without_weights_is_refused(tmp_path):
    message = f"{FILE} or {INDEX} in .*neither"
    with pytest.raises(CorruptFileError, match=message):
        KerasHubWeights(tmp_path)


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path, part):
    path = tmp_path / FILE
    write(path, values())
    data = path.read_bytes()
    path.write_bytes(data[: int(part * len(data))])
    with pytest.raises(CorruptFileError, match=f"HDF5 file at .*{FILE}"):
        KerasHubWeights(tmp_path)


@pytest.mark.parametrize("signature", [b"TREE", b"HEAP", b"SNOD"])
def test_a_file_with_damaged_structures_is_refused(tmp_path, signature):
    path = tmp_path / FILE
    write(path, values())
    data = path.read_bytes()
    assert signature in data
    path.write_bytes(data.replace(signature, b"GONE"))
    with pytest.raises(CorruptFileError, match=f"readable HDF5.*{FILE}"):
        KerasHubWeights(tmp_path)


def test_damaged_bytes_give_numbers_or_this_error(tmp_path):
    path = tmp_path / FILE
    write(path, values())
    data = path.read_bytes()
    generator = np.random.default_rng(0)
    refused = 0
    for _ in range(200):
        changed = bytearray(data)
        start = int(generator.integers(len(data) - 8))
        changed[start : start + 8] = generator.bytes(8)
        path.write_bytes(bytes(changed))
        try:
            weights = KerasHubWeights(tmp_path)
            for name, shape in weights.shapes.items():
                weights.read_rows(name, 0, shape[0] if shape else 0)
        except (CorruptFileError, InvalidInputError):
            refused += 1
    assert 10 < refused < 200


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path, dtype, value):
    tensors = values()
    tensors[KERNEL][2, 3] = value
    write(tmp_path / FILE, tensors, dtype)
    weights = KerasHubWeights(tmp_path)
    np.testing.assert_array_equal(
        weights.read_rows(KERNEL, 0, 2), rounded(tensors[KERNEL], dtype)[:2]
    )
    with pytest.raises(CorruptFileError, match=f"infinity in {KERNEL}"):
        weights.read_rows(KERNEL, 2, 3)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "S3"])
def test_other_types_are_refused(tmp_path, dtype):
    write(tmp_path / FILE, {KERNEL: np.ones((3, 5))}, dtype)
    weights = KerasHubWeights(tmp_path)
    message = f"float tensor.*{KERNEL} of type .*quantised"
    with pytest.raises(InvalidInputError, match=message):
        weights.read_rows(KERNEL, 0, 3)


def test_a_file_that_went_since_is_named(tmp_path):
    write(tmp_path / FILE, values())
    weights = KerasHubWeights(tmp_path)
    (tmp_path / FILE).unlink()
    with pytest.raises(CorruptFileError, match=f"{KERNEL} in .*{FILE}"):
        weights.read_rows(KERNEL, 0, 3)


# === Files that lead elsewhere ===


@pytest.fixture
def secret(tmp_path) -> pathlib.Path:
    """Return a file outside the folder, with a float tensor."""
    path = tmp_path / "secret.h5"
    with h5py.File(path, "w") as file:
        file["numbers"] = np.arange(15, dtype=np.float32).reshape(3, 5)
    (tmp_path / "model").mkdir()
    return path


def test_links_are_left_out(secret):
    folder = secret.with_name("model")
    write(folder / FILE, values())
    with h5py.File(folder / FILE, "a") as file:
        file["layers/soft"] = h5py.SoftLink(f"/{KERNEL}")
        file["layers/other"] = h5py.ExternalLink(str(secret), "/numbers")
    assert KerasHubWeights(folder).shapes == SHAPES


def test_a_virtual_dataset_is_refused(secret):
    folder = secret.with_name("model")
    layout = h5py.VirtualLayout(shape=(3, 5), dtype="float32")
    layout[:] = h5py.VirtualSource(str(secret), "numbers", shape=(3, 5))
    with h5py.File(folder / FILE, "w") as file:
        file.create_virtual_dataset(KERNEL, layout)
    with pytest.raises(CorruptFileError, match=f"{KERNEL}.*another file"):
        KerasHubWeights(folder)


def test_a_dataset_with_external_storage_is_refused(secret):
    folder = secret.with_name("model")
    with h5py.File(folder / FILE, "w") as file:
        file.create_dataset(
            KERNEL, (3, 5), "float32", external=[(str(secret), 0, 60)]
        )
    with pytest.raises(CorruptFileError, match=f"{KERNEL}.*another file"):
        KerasHubWeights(folder)
