"""Tests of reading the arrays of t5x checkpoints."""

import json
import pathlib
import shutil
import subprocess
import sys

import msgpack
import numpy as np
import pytest
from t5x_checkpoints import (
    T5xCheckpoint,
    T5xWeights,
    pack_tree,
    stored_dtype,
)

from tf_samtone.checkpoints._t5x_arrays import T5xArrays, is_t5x_checkpoint
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MissingDependencyError,
)

EMBEDDING = "token_embedder.embedding"
OUTPUT = "encoder.layers_1.mlp.wo.kernel"
NORM = "encoder.encoder_norm.scale"


def everything_inline(name, array):
    return True


def nothing_inline(name, array):
    return False


@pytest.fixture
def weights() -> dict[str, np.ndarray]:
    return T5xWeights().make()


@pytest.fixture
def checkpoint(tmp_path, weights) -> pathlib.Path:
    """Return a checkpoint that a test may spoil."""
    return T5xCheckpoint(chunk_rows=4).write(tmp_path / "t5x", weights)


def write_leaf(folder: pathlib.Path, leaf: object, version: int = 3) -> None:
    """Replace the msgpack file by one with a single weight, `a.kernel`."""
    target = {"a": {"kernel": leaf}}
    tree = {"version": version, "optimizer": {"target": target}}
    pack_tree(folder / "checkpoint", tree)


def spec_of(folder: pathlib.Path, **changes) -> dict:
    """Return the tensorstore spec of OUTPUT, with changes."""
    spec = {
        "driver": "zarr",
        "dtype": "float32",
        "kvstore": {"driver": "file", "path": f"target.{OUTPUT}"},
        "metadata": {"shape": [20, 12], "chunks": [4, 12]},
    }
    return {**spec, **changes}


def chunk(folder: pathlib.Path, key: str) -> pathlib.Path:
    return folder / f"target.{OUTPUT}" / key


def option_names(options) -> str:
    """Name a case without the address of a function in it."""
    values = [getattr(v, "__name__", str(v)) for v in options.values()]
    return "-".join(values) or "default"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_inline": everything_inline},
        {"is_inline": nothing_inline, "chunk_rows": 3},
        {"is_inline": everything_inline, "largest_inline_bytes": 64},
        {"storage": "gfile"},
        {"storage": "gcs"},
        {"path_beside_storage": True},
        {"wrapped": False},
        {"dtype": "bfloat16"},
        {"dtype": "bfloat16", "is_inline": everything_inline},
        {"dtype": "bfloat16", "version": 2},
        {"dtype": "float16", "is_inline": everything_inline},
    ],
    ids=option_names,
)
def test_every_form_of_storage_gives_the_same_float32_values(
    tmp_path, weights, options
):
    T5xCheckpoint(**options).write(tmp_path, weights)
    arrays = T5xArrays(tmp_path)
    dtype = options.get("dtype", "float32")
    assert set(arrays.dtypes.values()) == {dtype}
    for name, expected in weights.items():
        expected = expected.astype(stored_dtype(dtype)).astype(np.float32)
        actual = arrays.read(name)
        assert actual.dtype == np.float32
        np.testing.assert_array_equal(actual, expected, err_msg=name)


def test_names_are_dotted_and_shapes_are_stored_ones(checkpoint, weights):
    arrays = T5xArrays(checkpoint)
    assert arrays.shapes == {n: a.shape for n, a in weights.items()}
    assert arrays.step == 1000


@pytest.mark.parametrize("is_inline", [everything_inline, nothing_inline])
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (3, 9), (19, 20), (2, 2)])
def test_rows_are_those_of_the_whole(tmp_path, weights, is_inline, start, stop):
    writer = T5xCheckpoint(
        is_inline=is_inline, chunk_rows=4, largest_inline_bytes=100
    )
    arrays = T5xArrays(writer.write(tmp_path, weights))
    rows = arrays.read_rows(OUTPUT, start, stop)
    np.testing.assert_array_equal(rows, weights[OUTPUT][start:stop])


def test_only_the_chunks_of_the_rows_are_read(checkpoint, weights):
    for key in ("0.0", "2.0", "3.0", "4.0"):
        chunk(checkpoint, key).unlink()
    rows = T5xArrays(checkpoint).read_rows(OUTPUT, 4, 8)
    np.testing.assert_array_equal(rows, weights[OUTPUT][4:8])


def test_a_decoder_is_listed_and_need_not_be_there(tmp_path, weights):
    decoder = {"decoder.logits_dense.kernel": np.ones((2, 3), np.float32)}
    T5xCheckpoint(is_inline=nothing_inline).write(tmp_path, weights | decoder)
    shutil.rmtree(tmp_path / "target.decoder.logits_dense.kernel")
    arrays = T5xArrays(tmp_path)
    assert arrays.shapes.keys() == weights.keys()
    assert arrays.decoder_names == list(decoder)


def test_a_step_of_another_kind_is_left_out(tmp_path):
    target = {"a": np.ones(2, np.float32)}
    state = {"target": target, "state": {"step": np.ones(2, np.int32)}}
    pack_tree(tmp_path / "checkpoint", state)
    assert T5xArrays(tmp_path).step is None


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(CorruptFileError, match="`checkpoint_<step>`"):
        T5xArrays(tmp_path / "nowhere")


def test_the_folder_of_a_run_names_its_checkpoints(tmp_path, weights):
    T5xCheckpoint().write(tmp_path / "checkpoint_1000", weights)
    with pytest.raises(CorruptFileError, match=r"\['checkpoint_1000'\]"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize("size", [0, 1, 40, 3000, -1])
def test_a_truncated_tree_is_refused(checkpoint, size):
    path = checkpoint / "checkpoint"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CorruptFileError, match="Expected the msgpack map"):
        T5xArrays(checkpoint)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ([1, 2], "map"),
        ({"version": 3}, "no map of weights"),
        ({"target": {}}, "no map of weights"),
        ({"version": "3", "target": {"a": 1}}, "not an integer"),
        ({3: {}}, "not a string"),
        ({"target": {"a": {}}, "optimizer": {"target": {"b": {}}}}, "twice"),
    ],
)
def test_a_tree_that_is_no_checkpoint_is_refused(tmp_path, tree, message):
    packed = msgpack.packb(tree, strict_types=True)
    (tmp_path / "checkpoint").write_bytes(packed)
    with pytest.raises(CorruptFileError, match=message):
        T5xArrays(tmp_path)


def test_maps_in_maps_without_end_are_refused(tmp_path):
    nested = b"\x81\xa6target" + b"\x81\xa1a" * 5000 + b"\x80"
    (tmp_path / "checkpoint").write_bytes(nested)
    with pytest.raises(CorruptFileError, match="maps in maps"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize("code", [2, 127])
def test_other_extension_types_are_refused(tmp_path, code):
    write_leaf(tmp_path, msgpack.ExtType(code, b"x" * 40))
    with pytest.raises(CorruptFileError, match=f"type {code}, not an"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (([2, 3], "float32", b"\0" * 20), "20 bytes"),
        (([2, -3], "float32", b"\0" * 24), "shape"),
        ((None, "float32", b"\0" * 24), "shape"),
        (([2, 3], "object", b"\0" * 48), "type 'object'"),
        (([2, 3], "float32"), "without shape"),
        (([2, 3], "float32", [0] * 24), "bytes for"),
    ],
)
def test_a_malformed_inline_array_is_refused(tmp_path, fields, message):
    write_leaf(tmp_path, msgpack.ExtType(1, msgpack.packb(fields)))
    with pytest.raises(CorruptFileError, match=message):
        T5xArrays(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [{"chunks": {}}, {"chunks": {"1": np.ones(4)}}, {"shape": {"0": 3}}],
    ids=["none", "gap", "other size"],
)
def test_parts_that_are_no_array_are_refused(tmp_path, changes):
    leaf = {"__msgpack_chunked_array__": True, "shape": {"0": 2}}
    leaf["chunks"] = {"0": np.ones(2, np.float32)}
    write_leaf(tmp_path, leaf | changes)
    with pytest.raises(CorruptFileError, match="in parts"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize("leaf", [None, 3, "kernel", [1.0]], ids=repr)
def test_a_leaf_that_is_no_array_is_named(tmp_path, leaf):
    write_leaf(tmp_path, leaf)
    with pytest.raises(CorruptFileError, match=r"Expected a\.kernel"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/target",
        "../t5x/target",
        "target/../../target",
        "",
        ".",
        "a\\b",
        None,
        3,
    ],
    ids=repr,
)
def test_arrays_lie_below_the_folder_only(checkpoint, path):
    write_leaf(
        checkpoint,
        spec_of(checkpoint, kvstore={"driver": "file", "path": path}),
    )
    with pytest.raises(CorruptFileError, match="the path"):
        T5xArrays(checkpoint)


def test_a_link_out_of_the_folder_is_refused(checkpoint, tmp_path):
    shutil.move(checkpoint / f"target.{OUTPUT}", tmp_path / "elsewhere")
    (checkpoint / f"target.{OUTPUT}").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptFileError, match="a link out of"):
        T5xArrays(checkpoint)


@pytest.mark.parametrize(
    "changes",
    [
        {"kvstore": {"driver": "http", "base_url": "http://localhost"}},
        {"kvstore": {"driver": "memory"}},
        {"kvstore": "file:///etc"},
        {"driver": "n5"},
        {"driver": "cast", "base": {}},
    ],
    ids=["http", "memory", "url", "n5", "cast"],
)
def test_other_drivers_are_refused(checkpoint, changes):
    write_leaf(checkpoint, spec_of(checkpoint, **changes))
    with pytest.raises(CorruptFileError, match=r"tensorstore driver|storage"):
        T5xArrays(checkpoint)


def test_a_missing_array_folder_is_named(checkpoint):
    shutil.rmtree(checkpoint / f"target.{OUTPUT}")
    with pytest.raises(CorruptFileError, match=f"{OUTPUT} with .zarray"):
        T5xArrays(checkpoint)


def test_a_shape_that_differs_from_the_spec_is_refused(checkpoint):
    write_leaf(checkpoint, spec_of(checkpoint, metadata={"shape": [12, 20]}))
    message = r"shape \(12, 20\).*shape=\(20, 12\)"
    with pytest.raises(CorruptFileError, match=message):
        T5xArrays(checkpoint)


def test_a_missing_chunk_is_not_read_as_zeros(checkpoint):
    chunk(checkpoint, "1.0").unlink()
    arrays = T5xArrays(checkpoint)
    with pytest.raises(CorruptFileError, match=r"all its chunks.*1\.0"):
        arrays.read(OUTPUT)


def test_a_truncated_chunk_is_refused(checkpoint):
    path = chunk(checkpoint, "1.0")
    path.write_bytes(path.read_bytes()[:60])
    with pytest.raises(CorruptFileError, match="all its chunks"):
        T5xArrays(checkpoint).read(OUTPUT)


@pytest.mark.parametrize("text", ["{", "[]", '{"shape": 3}'], ids=repr)
def test_a_broken_zarr_description_is_refused(checkpoint, text):
    chunk(checkpoint, ".zarray").write_text(text)
    with pytest.raises(CorruptFileError, match=r"\.zarray"):
        T5xArrays(checkpoint)


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
@pytest.mark.parametrize("name", [OUTPUT, NORM], ids=["zarr", "inline"])
def test_weights_that_are_not_finite_are_refused(
    tmp_path, weights, name, value
):
    weights[name].flat[3] = value
    arrays = T5xArrays(T5xCheckpoint().write(tmp_path, weights))
    with pytest.raises(CorruptFileError, match=f"infinity in {name}"):
        arrays.read(name)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float64"])
@pytest.mark.parametrize("name", [OUTPUT, NORM], ids=["zarr", "inline"])
def test_weights_of_other_types_are_refused(tmp_path, weights, name, dtype):
    weights[name] = weights[name].astype(dtype)
    T5xCheckpoint().write(tmp_path, weights)
    with pytest.raises(InvalidInputError, match=f"Received: {name} of type"):
        T5xArrays(tmp_path)


def test_placeholders_of_orbax_are_explained(tmp_path):
    write_leaf(tmp_path, "PLACEHOLDER://target.a.kernel")
    with pytest.raises(CorruptFileError, match=r"orbax's layout.*PLACEHOLD"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize("name", ["manifest.ocdbt", "_METADATA"])
def test_a_folder_of_orbax_is_explained(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(CorruptFileError, match=f"orbax's layout.*{name}"):
        T5xArrays(tmp_path)


@pytest.mark.parametrize("package", ["msgpack", "tensorstore"])
def test_a_missing_package_is_named_with_its_extra(
    checkpoint, monkeypatch, package
):
    monkeypatch.setitem(sys.modules, package, None)
    message = rf'package {package}.*pip install "tf-samtone\[t5x\]"'
    with pytest.raises(MissingDependencyError, match=message):
        T5xArrays(checkpoint)


@pytest.mark.parametrize("wrapped", [True, False])
def test_a_checkpoint_is_recognised(tmp_path, weights, wrapped):
    T5xCheckpoint(wrapped=wrapped).write(tmp_path, weights)
    assert is_t5x_checkpoint(tmp_path)


@pytest.mark.parametrize(
    "content",
    [None, b"", b'model_checkpoint_path: "ckpt-1"\n', b"\x81\xa1a\x01"],
    ids=repr,
)
def test_other_folders_are_not_recognised(tmp_path, content):
    if content is not None:
        (tmp_path / "checkpoint").write_bytes(content)
    assert not is_t5x_checkpoint(tmp_path)


def test_reading_needs_no_tensorflow(checkpoint):
    program = (
        "import json, sys\n"
        "from tf_samtone.checkpoints._t5x_arrays import T5xArrays\n"
        "from tf_samtone.checkpoints._t5x_layout import read_t5x_size\n"
        f"read_t5x_size(T5xArrays({str(checkpoint)!r}))\n"
        "print(json.dumps('tensorflow' in sys.modules))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        check=True,
        text=True,
    )
    assert json.loads(result.stdout) is False
