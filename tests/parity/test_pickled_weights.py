"""Pickled weights that the user has named."""

import pathlib
import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file
from sbert_folders import SentenceTransformersFolder

from tf_samtone.errors import CorruptFileError
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
