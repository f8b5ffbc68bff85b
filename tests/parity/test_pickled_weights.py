"""Pickled weights that the user has named."""

import pathlib
import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file
from sbert_folders import SentenceTransformersFolder

from tf_samtone.checkpoints._tensor_folder import TensorFolder
from tf_samtone.errors import CorruptFileError, InvalidInputError
from tf_samtone.models import DualEncoder

pytestmark = pytest.mark.parity
FILES = ("pytorch_model.bin", "2_Dense/pytorch_model.bin")


@pytest.fixture
def folder(tmp_path) -> pathlib.Path:
    """A folder whose weights are all pickled, and a twin that is not."""
    import torch

    for name in ("pickled", "plain"):
        SentenceTransformersFolder(dense="bare").write(tmp_path / name)
    for name in FILES:
        path = (tmp_path / "pickled" / name).with_name("model.safetensors")
        tensors = {
            key: torch.from_numpy(value)
            for key, value in load_file(path).items()
        }
        torch.save(tensors, tmp_path / "pickled" / name)
        path.unlink()
    return tmp_path / "pickled"


def test_they_give_the_embeddings_of_safetensors(folder):
    model = DualEncoder.from_preset(folder, pickled_files=FILES)
    twin = DualEncoder.from_preset(folder.with_name("plain"))
    np.testing.assert_array_equal(
        model.encode_queries(["a cat"]), twin.encode_queries(["a cat"])
    )


class _Hostile:
    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __reduce__(self):
        return pathlib.Path.touch, (self.path,)


def test_code_in_them_is_not_run(folder):
    trace = folder / "trace"
    (folder / FILES[0]).write_bytes(pickle.dumps({"a": _Hostile(trace)}))
    with pytest.raises(CorruptFileError, match="Expected tensors alone"):
        DualEncoder.from_preset(folder, pickled_files=FILES)
    assert not trace.exists()


NAMES = ("a.bin", "b.bin")


@pytest.fixture
def pickled(tmp_path):
    """Return a function that saves values and returns the open folder."""
    import torch

    def save(*values, **options) -> TensorFolder:
        for name, value in zip(NAMES, values, strict=False):
            torch.save(value, tmp_path / name, **options)
        return TensorFolder(tmp_path, pickled_files=NAMES)

    return save


def numbers(dtype: str = "float32"):
    import torch

    return torch.arange(1, 13).reshape(4, 3).to(getattr(torch, dtype)) / 7


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("float32", "F32"), ("float16", "F16"), ("bfloat16", "BF16")],
)
def test_rows_are_float32_whatever_is_stored(pickled, dtype, name):
    folder = pickled({"kernel": numbers(dtype)})
    assert folder.dtypes == {"kernel": name}
    assert folder.shapes == {"kernel": (4, 3)}
    rows = folder.read_rows("kernel", 1, 3)
    assert rows.dtype == np.float32
    np.testing.assert_array_equal(rows, numbers(dtype).double().numpy()[1:3])


def test_files_of_torch_before_1_6_are_read(pickled):
    folder = pickled(
        {"kernel": numbers()}, _use_new_zipfile_serialization=False
    )
    np.testing.assert_array_equal(folder.read("kernel"), numbers().numpy())


def test_several_files_are_read_as_one(pickled):
    folder = pickled({"kernel": numbers()}, {"norm": numbers()[0]})
    assert sorted(folder.shapes) == ["kernel", "norm"]
    np.testing.assert_array_equal(folder.read("norm"), numbers()[0].numpy())


def test_a_tensor_in_two_files_is_named(pickled):
    with pytest.raises(CorruptFileError, match=r"kernel in .*b\.bin too"):
        pickled({"kernel": numbers()}, {"kernel": numbers()})


def test_parameters_are_read_as_tensors(pickled):
    import torch

    folder = pickled({"kernel": torch.nn.Parameter(numbers())})
    np.testing.assert_array_equal(folder.read("kernel"), numbers().numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=str)
def test_pickled_numbers_that_are_not_finite_are_refused(pickled, value):
    folder = pickled({"kernel": value * numbers()})
    with pytest.raises(CorruptFileError, match="infinity in kernel"):
        folder.read("kernel")


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_other_types_are_refused(pickled, dtype):
    folder = pickled({"kernel": numbers().to(getattr(_torch(), dtype))})
    with pytest.raises(InvalidInputError, match=f"kernel of type {dtype}"):
        folder.read("kernel")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: [numbers()], "Received: list"),
        (lambda: {"model": {"kernel": numbers()}}, "'model', dict"),
        (lambda: {7: numbers()}, "7, Tensor"),
        (
            lambda: {"kernel": numbers().to_sparse().coalesce()},
            "'kernel', Tensor torch.sparse_coo",
        ),
        (
            lambda: {"kernel": _torch().ones(2, device="meta")},
            "'kernel', Tensor torch.strided meta",
        ),
    ],
    ids=["list", "nested", "unnamed", "sparse", "meta"],
)
# torch words it differently from one release to the next.
@pytest.mark.filterwarnings("ignore:.*[Ss]parse.*invariant:UserWarning")
def test_anything_but_dense_named_tensors_is_refused(pickled, make, message):
    with pytest.raises(CorruptFileError, match=message):
        pickled(make())


@pytest.mark.parametrize("size", [0, 100, -30], ids=str)
def test_a_truncated_pickle_is_refused(pickled, tmp_path, size):
    pickled({"kernel": numbers()})
    path = tmp_path / NAMES[0]
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(CorruptFileError, match="Expected tensors alone"):
        TensorFolder(tmp_path, pickled_files=NAMES)


def _torch():
    import torch

    return torch
