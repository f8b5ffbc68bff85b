"""Tiny models with random weights, and a collection to index."""

import json
import shutil
from pathlib import Path

import pytest

from tf_samtone.models import DualEncoder

DATA_FILES = Path(__file__).resolve().parent.parent / "data_files"


def _tiny_model(folder: Path, architecture: str) -> DualEncoder:
    shutil.copytree(DATA_FILES / "t5_tiny_gated_gelu", folder)
    shutil.copy(DATA_FILES / "tiny.spm", folder / "spiece.model")
    return DualEncoder.from_preset(
        str(folder),
        architecture=architecture,
        projection_dim=24,
        query_length=6,
        document_length=12,
    )


@pytest.fixture(scope="session")
def shared_model(tmp_path_factory):
    """One tower for queries and documents."""
    return _tiny_model(tmp_path_factory.mktemp("sde") / "t5", "sde")


@pytest.fixture(scope="session")
def separate_model(tmp_path_factory):
    """Two towers with opposite projections, so their outputs differ."""
    model = _tiny_model(tmp_path_factory.mktemp("ade") / "t5", "ade")
    kernel = model.document_tower.projection.kernel
    kernel.assign(-kernel.numpy())
    return model


@pytest.fixture(scope="session")
def preset(shared_model, tmp_path_factory):
    """The folder of the shared model, as `--model` wants it."""
    folder = tmp_path_factory.mktemp("presets") / "shared"
    shared_model.save_to_preset(str(folder))
    return folder


@pytest.fixture(scope="session")
def collection(tmp_path_factory):
    """A BEIR folder of three documents and two judged queries."""
    folder = tmp_path_factory.mktemp("collection")
    documents = {
        "hamlet": "Hamlet is a tragedy",
        "paris": "Paris is a capital",
        "whale": "a whale is no fish",
    }
    queries = {"q1": "a tragedy", "q2": "which fish"}
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": i, "text": t}) for i, t in texts.items()]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\nq1\thamlet\t1\nq2\twhale\t1\n"
    )
    return folder
