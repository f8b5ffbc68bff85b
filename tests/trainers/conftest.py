"""A tiny preset, a tiny BEIR folder, and recipes made of them."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tf_samtone.trainers import (
    DataRecipe,
    EvaluationRecipe,
    ModelRecipe,
    Recipe,
    StageRecipe,
)

DATA_FILES = Path(__file__).resolve().parent.parent / "data_files"
SUBJECTS = ("whale", "paris", "hamlet", "copper", "violin", "glacier")


@pytest.fixture(scope="session")
def preset_folder(tmp_path_factory):
    """A Hugging Face folder of random T5 weights with a vocabulary."""
    folder = tmp_path_factory.mktemp("preset") / "t5"
    shutil.copytree(DATA_FILES / "t5_tiny_gated_gelu", folder)
    shutil.copy(DATA_FILES / "tiny.spm", folder / "spiece.model")
    return folder


@pytest.fixture(scope="session")
def beir_folder(tmp_path_factory):
    """Six subjects, two questions each; one subject held out per split."""
    folder = tmp_path_factory.mktemp("beir")
    corpus = [{"_id": s, "text": f"{s}, a {s[::-1]}"} for s in SUBJECTS]
    queries = [
        {"_id": f"{s}-{i}", "text": f"{s}, {question}"}
        for s in SUBJECTS
        for i, question in enumerate(("what is", "who knows"))
    ]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "qrels").mkdir()
    splits = {"train": SUBJECTS[:4], "dev": SUBJECTS[4:5], "test": SUBJECTS[5:]}
    for split, subjects in splits.items():
        lines = [f"{s}-{i}\t{s}\t1\n" for s in subjects for i in (0, 1)]
        path = folder / "qrels" / f"{split}.tsv"
        path.write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    return folder


@pytest.fixture(scope="session")
def make_recipe(preset_folder, beir_folder):
    """Returns a function that makes a recipe of three steps."""

    def make(**changes):
        parts = {
            "name": "tiny",
            "data": DataRecipe(path=str(beir_folder)),
            "model": ModelRecipe(
                preset=str(preset_folder),
                projection_dim=8,
                query_length=6,
                document_length=8,
            ),
            "stages": (StageRecipe(steps=3, batch_size=4),),
            "evaluation": EvaluationRecipe(metrics=("P@1", "MRR@10")),
        }
        return Recipe(**{**parts, **changes})

    return make


@pytest.fixture(scope="session")
def tiny_package(tmp_path_factory):
    """The name of an importable package of 40 files with 3 functions each.

    There are enough files for the hash of their names to give all splits.
    """
    folder = tmp_path_factory.mktemp("packages") / "tiny_package"
    folder.mkdir()
    animals = ("horse", "mouse", "eagle")
    places = ("river", "castle", "meadow", "office", "harbour", "cellar")
    for i in range(40):
        place = f"{places[i % 6]}_{places[i // 6 % 6]}"
        functions = [
            f"def {animal}_{place}(field, {place}={i}):\n"
            f'    """Find the {animal} number n{i} of the {place}."""\n'
            f"    # Look behind the tree first.\n"
            f"    return {place}.{animal}({animal!r}, {place})\n"
            for animal in animals
        ]
        (folder / f"m{i}.py").write_text("\n".join(functions))
    sys.path.insert(0, str(folder.parent))
    yield folder.name
    sys.path.remove(str(folder.parent))
