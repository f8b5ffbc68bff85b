"""Tests of reading the tensors of safetensors folders, part by part."""

import pathlib
import sys

import numpy as np
import pytest
from t5_folders import save_tensors, write_json

from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingDependencyError,
)

INDEX = "model.safetensors.index.json"


def values() -> dict[str, np.ndarray]:
    """Return numbers that half precision has to round."""
    generator = np.random.default_rng(0)
    return {
        name: generator.normal(size=shape).astype(np.float32)
        for name, shape in {
            "table": (9, 4),
            "kernel": (3, 5),
            "norm": (6,),
        }.items()
    }


def rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return what is left of float32 numbers in another float type."""
    if dtype != "bfloat16":
        return array.astype(dtype).astype(np.float32)
    # Half an upper half more, and one less where the last bit is even.
    bits = array.view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32)


def write_shards(folder: pathlib.Path, dtype: str = "float32") -> None:
    """Write the table to a.safetensors, the rest to b.safetensors."""
    tensors = values()
    table = {"table": tensors.pop("table")}
    save_tensors(folder / "a.safetensors", table, dtype)
    save_tensors(folder / "b.safetensors", tensors, dtype)
    write_index(folder)


def write_index(folder: pathlib.Path, **changes: object) -> None:
    files = {"table": "a.safetensors"}
    files |= dict.fromkeys(("kernel", "norm"), "b.safetensors")
    write_json(folder / INDEX, {"weight_map": {**files, **changes}})


# === What is read ===


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("is_sharded", [False, True], ids=["one", "shards"])
def test_tensors_are_read_as_float32(tmp_path, dtype, is_sharded):
    if is_sharded:
        write_shards(tmp_path, dtype)
    else:
        save_tensors(tmp_path / "model.safetensors", values(), dtype)
    folder = TensorFolder(tmp_path)
    assert folder.shapes == {"table": (9, 4), "kernel": (3, 5), "norm": (6,)}
    for name, expected in values().items():
        actual = folder.read(name)
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual, rounded(expected, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["table", "norm"])
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (2, 5), (5, 6), (0, 6)])
def test_rows_are_those_of_the_whole(tmp_path, dtype, name, start, stop):
    save_tensors(tmp_path / "model.safetensors", values(), dtype)
    folder = TensorFolder(tmp_path)
    np.testing.assert_array_equal(
        folder.read_rows(name, start, stop), folder.read(name)[start:stop]
    )


def test_types_are_known_without_reading(tmp_path):
    save_tensors(tmp_path / "model.safetensors", values(), "bfloat16")
    assert set(TensorFolder(tmp_path).dtypes.values()) == {"BF16"}


def test_another_first_part_of_the_name_may_be_given(tmp_path):
    save_tensors(tmp_path / "projection.safetensors", values())
    folder = TensorFolder(tmp_path, stem="projection")
    np.testing.assert_array_equal(folder.read("norm"), values()["norm"])


def test_one_file_goes_before_shards(tmp_path):
    write_shards(tmp_path)
    save_tensors(tmp_path / "model.safetensors", {"norm": np.ones(6)})
    folder = TensorFolder(tmp_path)
    assert list(folder.shapes) == ["norm"]
    np.testing.assert_array_equal(folder.read("norm"), np.ones(6))


def test_a_tensor_that_the_index_forgot_is_listed(tmp_path):
    """So that whoever wants no other tensors sees it."""
    write_shards(tmp_path)
    more = {"table": values()["table"], "extra": np.ones(2, np.float32)}
    save_tensors(tmp_path / "a.safetensors", more)
    assert "extra" in TensorFolder(tmp_path).shapes


def test_links_of_a_download_cache_are_followed(tmp_path):
    """The cache of Hugging Face is made of links to `../../blobs`."""
    blobs, folder = tmp_path / "blobs", tmp_path / "snapshots" / "1"
    blobs.mkdir()
    folder.mkdir(parents=True)
    save_tensors(blobs / "0a1b", values())
    (folder / "model.safetensors").symlink_to("../../blobs/0a1b")
    np.testing.assert_array_equal(
        TensorFolder(folder).read("norm"), values()["norm"]
    )


# === What is refused ===


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_tensor_that_is_not_finite_is_named(tmp_path, dtype, value):
    tensors = values()
    tensors["kernel"][1, 2] = value
    save_tensors(tmp_path / "model.safetensors", tensors, dtype)
    folder = TensorFolder(tmp_path)
    with pytest.raises(CorruptFileError, match="infinity in kernel"):
        folder.read("kernel")
    with pytest.raises(CorruptFileError, match="infinity in kernel"):
        folder.read_rows("kernel", 1, 2)
    # The others are as good as ever.
    folder.read_rows("kernel", 0, 1)
    folder.read("table")


@pytest.mark.parametrize(
    ("stored", "name"),
    [(np.int8, "I8"), (np.int64, "I64"), (np.float64, "F64"), (bool, "BOOL")],
    ids=["int8", "int64", "float64", "bool"],
)
def test_other_types_are_named(tmp_path, stored, name):
    from safetensors.numpy import save_file

    save_file(
        {"kernel": np.ones((2, 2), stored)}, tmp_path / "model.safetensors"
    )
    folder = TensorFolder(tmp_path)
    with pytest.raises(InvalidInputError, match=f"kernel of type {name}"):
        folder.read("kernel")


@pytest.mark.parametrize(
    "name",
    [
        "../a.safetensors",
        "./a.safetensors",
        "sub/a.safetensors",
        "/a.safetensors",
        "..",
        "a.bin",
        "",
        None,
        ["a.safetensors"],
    ],
    ids=str,
)
def test_an_index_names_files_of_its_folder_only(tmp_path, name):
    inside = tmp_path / "inside"
    inside.mkdir()
    write_shards(inside)
    # It is there: nothing but the name is wrong with it.
    save_tensors(tmp_path / "a.safetensors", {"table": values()["table"]})
    write_index(inside, table=name)
    with pytest.raises(CorruptFileError, match="Expected plain names"):
        TensorFolder(inside)


@pytest.mark.parametrize("weight_map", [None, {}, [], "a"], ids=repr)
def test_an_index_without_a_map_is_refused(tmp_path, weight_map):
    write_shards(tmp_path)
    write_json(tmp_path / INDEX, {"weight_map": weight_map})
    with pytest.raises(CorruptFileError, match="Expected a `weight_map`"):
        TensorFolder(tmp_path)


def test_a_missing_shard_is_named(tmp_path):
    write_shards(tmp_path)
    (tmp_path / "b.safetensors").unlink()
    with pytest.raises(CorruptFileError, match=r"b\.safetensors"):
        TensorFolder(tmp_path)


def test_a_tensor_that_its_shard_lacks_is_named(tmp_path):
    write_shards(tmp_path)
    write_index(tmp_path, ghost="a.safetensors")
    with pytest.raises(CorruptFileError, match=r"without \['ghost'\]"):
        TensorFolder(tmp_path)


def test_a_tensor_in_another_shard_than_the_index_says_is_named(tmp_path):
    write_shards(tmp_path)
    write_index(tmp_path, norm="a.safetensors")
    message = r"Expected norm in a\.safetensors.*it in b\.safetensors"
    with pytest.raises(CorruptFileError, match=message):
        TensorFolder(tmp_path)


@pytest.mark.parametrize("is_in_index", [True, False])
def test_a_tensor_in_two_shards_is_named(tmp_path, is_in_index):
    write_shards(tmp_path)
    tensors = values()
    del tensors["table"]
    save_tensors(tmp_path / "a.safetensors", {**values(), **tensors})
    if not is_in_index:
        files = {"table": "a.safetensors", "kernel": "b.safetensors"}
        write_json(tmp_path / INDEX, {"weight_map": files})
    with pytest.raises(CorruptFileError, match=r"it in [ab]\.saf\w+ too"):
        TensorFolder(tmp_path)


@pytest.mark.parametrize("size", [0, 4, 8, 40, -1], ids=str)
def test_a_truncated_file_is_refused(tmp_path, size):
    path = tmp_path / "model.safetensors"
    save_tensors(path, values())
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CorruptFileError, match="Expected a safetensors file"):
        TensorFolder(tmp_path)


def test_a_header_without_end_is_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes((2**62).to_bytes(8, "little") + b"{}")
    with pytest.raises(CorruptFileError, match="Expected a safetensors file"):
        TensorFolder(tmp_path)


def test_a_file_that_goes_away_is_named(tmp_path):
    path = tmp_path / "model.safetensors"
    save_tensors(path, values())
    folder = TensorFolder(tmp_path)
    path.unlink()
    with pytest.raises(CorruptFileError, match=r"at .*model\.safetensors"):
        folder.read("table")


def test_a_folder_without_weights_is_refused(tmp_path):
    message = rf"Expected model\.safetensors or {INDEX}.*Received: neither"
    with pytest.raises(CorruptFileError, match=message):
        TensorFolder(tmp_path)


# === Pickles; what is in them: tests/parity/test_pickled_weights.py ===

PICKLES = ["pytorch_model.bin", "a.pt", "a.pth", "a.ckpt", "a.pkl"]


@pytest.mark.parametrize("name", PICKLES)
def test_pickles_are_refused_unopened(tmp_path, name):
    (tmp_path / name).write_bytes(b"no pickle at all")
    with pytest.raises(InvalidInputError, match="can run the code") as caught:
        TensorFolder(tmp_path)
    assert name in str(caught.value)


def test_another_pickle_than_the_named_one_is_refused(tmp_path):
    (tmp_path / "other.bin").write_bytes(b"no pickle at all")
    with pytest.raises(InvalidInputError, match=r"other\.bin"):
        TensorFolder(tmp_path, pickled_files=["pytorch_model.bin"])


def test_a_named_pickle_is_not_read_if_there_are_safetensors(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"no pickle at all")
    save_tensors(tmp_path / "model.safetensors", values())
    folder = TensorFolder(tmp_path, pickled_files=["pytorch_model.bin"])
    np.testing.assert_array_equal(folder.read("norm"), values()["norm"])


def test_a_named_pickle_needs_torch(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "pytorch_model.bin").write_bytes(b"no pickle at all")
    with pytest.raises(MissingDependencyError, match=r"tf-samtone\[bench\]"):
        TensorFolder(tmp_path, pickled_files=["pytorch_model.bin"])
