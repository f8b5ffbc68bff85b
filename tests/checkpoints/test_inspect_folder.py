"""Tests of what a folder is said to be, against what a loader makes of it."""

import hashlib
import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sbert_folders import SentenceTransformersFolder
from t5_folders import T5Folder
from t5x_checkpoints import T5xCheckpoint, T5xWeights

from tf_samtone._files import write_manifest
from tf_samtone.checkpoints import (
    FOLDER_KINDS,
    _inspect_saved,
    inspect_folder,
    save_hugging_face_t5,
    save_keras_hub_preset,
    save_sentence_transformers,
)
from tf_samtone.errors import InvalidInputError, SamToNeError
from tf_samtone.models import DualEncoder, projection_layer
from tf_samtone.retrieval import BM25Index, ExactIndex
from tf_samtone.retrieval._storage import FORMAT_VERSION as INDEX_VERSION
from tf_samtone.trainers.checkpoint_store import (
    FORMAT_VERSION as CHECKPOINT_VERSION,
)

# KerasHub leaves the vocabulary's file to the garbage collector.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)
VOCABULARY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"
MODEL_KINDS = ("dual_encoder", "sentence_transformers", "keras_hub")
ARCHITECTURES = ("sde", "ade", "ade-spl", "ade-ste", "ade-fte")
SAVE = {
    "dual_encoder": lambda model, folder: model.save_to_preset(str(folder)),
    "sentence_transformers": save_sentence_transformers,
    "keras_hub": save_keras_hub_preset,
    "hugging_face": save_hugging_face_t5,
}


@pytest.fixture(scope="module")
def models(make_tiny_dual_encoder) -> dict[str, DualEncoder]:
    """Models of every architecture, with every part that can be there."""
    return {
        architecture: make_tiny_dual_encoder(
            architecture,
            projection=projection_layer(8, use_bias=True, activation="tanh"),
            query_prefix="ask: ",
            document_prefix="read: ",
        )
        for architecture in ARCHITECTURES
    }


@pytest.fixture(scope="module")
def folders(models, tmp_path_factory) -> dict[tuple[str, str], pathlib.Path]:
    """Folders that no test changes, by kind and architecture."""
    root = tmp_path_factory.mktemp("folders")
    made = {}
    for kind in MODEL_KINDS:
        for architecture, model in models.items():
            made[kind, architecture] = root / f"{kind}-{architecture}"
            SAVE[kind](model, made[kind, architecture])
    made["hugging_face", "sde"] = root / "hugging_face"
    save_hugging_face_t5(models["sde"], made["hugging_face", "sde"])
    return made


def loads(folder: pathlib.Path) -> str | None:
    """Return the message of the loader, `None` if it loads the folder."""
    try:
        DualEncoder.from_preset(str(folder))
    except SamToNeError as error:
        return " ".join(str(error).split())
    return None


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("kind", MODEL_KINDS)
def test_the_facts_are_those_of_the_model_that_is_loaded(
    folders, kind, architecture
):
    report = inspect_folder(folders[kind, architecture])
    model = DualEncoder.from_preset(str(folders[kind, architecture]))

    assert (report.kind, report.problems) == (kind, ())
    facts = report.facts
    assert facts["architecture"] == model.architecture == architecture
    assert facts["parameters"] == model.count_params()
    assert facts["projection"] == {
        "dim": model.dim,
        "bias": True,
        "activation": "tanh",
    }
    encoder = model.query_tower.encoder
    assert facts["encoder"]["hidden_dim"] == encoder.hidden_dim
    assert facts["encoder"]["vocabulary_size"] == encoder.vocabulary_size
    assert facts["query_prefix"] == model.query_preprocessor.prefix
    assert facts["document_prefix"] == model.document_preprocessor.prefix
    assert facts["query_length"] == model.query_preprocessor.sequence_length
    assert (
        facts["document_length"] == model.document_preprocessor.sequence_length
    )
    assert facts["normalize"] is model.query_tower.normalize
    assert facts["pooling"] == "mean"


def test_every_report_can_be_written_as_json(folders):
    for folder in folders.values():
        report = inspect_folder(folder)

        assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
        assert report.can_load


def test_the_fingerprint_is_the_one_that_indexes_know(folders, models):
    report = inspect_folder(folders["dual_encoder", "ade"])

    assert report.facts["fingerprint"] == models["ade"].fingerprint()


def test_the_digest_of_one_file_is_that_of_sha256sum(folders):
    folder = folders["hugging_face", "sde"]
    content = (folder / "model.safetensors").read_bytes()

    weights = inspect_folder(folder).facts["weights"]

    assert weights == {
        "files": 1,
        "bytes": len(content),
        "dtypes": ["float32"],
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def test_the_digest_of_several_files_is_that_of_the_lines_of_sha256sum(
    folders,
):
    folder = folders["sentence_transformers", "sde"]
    names = ["2_Dense/model.safetensors", "model.safetensors"]
    lines = "".join(
        f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n"
        for name in names
    )

    weights = inspect_folder(folder).facts["weights"]

    assert weights["files"] == 2
    assert weights["sha256"] == hashlib.sha256(lines.encode()).hexdigest()


def test_the_tokenizer_is_named_with_its_pieces_and_digest(folders):
    report = inspect_folder(folders["keras_hub", "sde"])

    assert report.facts["tokenizer"] == {
        "file": "assets/tokenizer/vocabulary.spm",
        "pieces": 230,
        "sha256": hashlib.sha256(VOCABULARY.read_bytes()).hexdigest(),
    }


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_hugging_face_folders_tell_the_type_of_their_weights(tmp_path, dtype):
    T5Folder(dtype=dtype, shards=2).write(tmp_path / "t5")

    report = inspect_folder(tmp_path / "t5")

    assert (report.kind, report.problems) == ("hugging_face", ())
    assert report.facts["weights"]["dtypes"] == [dtype]
    assert report.facts["weights"]["files"] == 2


def test_published_sizes_are_named(tmp_path):
    T5Folder().write(tmp_path / "t5")
    config = json.loads((tmp_path / "t5" / "config.json").read_text())
    # T5 1.1 small, as its config.json says.
    config |= {"d_model": 512, "d_kv": 64, "d_ff": 1024, "num_layers": 8}
    config |= {"num_heads": 6, "vocab_size": 32128}
    config["feed_forward_proj"] = "gated-gelu"
    (tmp_path / "t5" / "config.json").write_text(json.dumps(config))

    report = inspect_folder(tmp_path / "t5")

    assert report.facts["published_sizes"] == ["t5_1.1_small"]
    # From transformers: sum(p.numel() for p in T5EncoderModel(config)).
    assert report.facts["parameters"] == 35_332_800


@pytest.mark.parametrize("generation", ["legacy", "current"])
def test_foreign_sentence_transformers_folders_are_understood(
    tmp_path, generation
):
    folder = SentenceTransformersFolder(generation=generation, dense=True)
    folder.write(tmp_path / "sbert")

    report = inspect_folder(tmp_path / "sbert")

    assert (report.kind, report.problems) == ("sentence_transformers", ())
    assert report.facts["projection"]["dim"] == folder.dim


@pytest.mark.parametrize("shared", [True, False])
def test_t5x_checkpoints_are_understood(tmp_path, shared):
    weights = {}
    for side in ("left", "right"):
        weights |= T5xWeights(
            encoder=f"{side}_encoder", own_embedding=not shared
        ).make()
        weights[f"{side}_projection_layer.kernel"] = np.ones(
            (12, 7), np.float32
        )
    folder = T5xCheckpoint().write(tmp_path / "checkpoint_9", weights)
    shutil.copy(VOCABULARY, folder / "spiece.model")

    report = inspect_folder(folder)

    assert (report.kind, report.problems) == ("t5x", ())
    assert report.facts["architecture"] == ("ade-ste" if shared else "ade")
    assert report.facts["projection"]["dim"] == 7
    assert report.facts["parameters"] == sum(w.size for w in weights.values())
    assert loads(folder) is None


def test_a_t5x_checkpoint_without_a_vocabulary_has_that_problem(tmp_path):
    folder = T5xCheckpoint().write(tmp_path / "t5x", T5xWeights().make())

    report = inspect_folder(folder)

    assert report.facts["encoder"]["num_layers"] == 2
    assert list(report.problems) == [loads(folder)]


def test_a_keras_hub_preset_of_a_t5_is_understood(
    make_tiny_encoder, folders, tmp_path
):
    encoder = make_tiny_encoder(0)
    encoder.save_to_preset(str(tmp_path / "t5"))
    shutil.copytree(
        folders["keras_hub", "sde"] / "assets", tmp_path / "t5" / "assets"
    )

    report = inspect_folder(tmp_path / "t5")

    assert (report.kind, report.problems) == ("keras_hub_t5", ())
    assert report.facts["parameters"] == encoder.count_params()
    assert report.facts["weights"]["dtypes"] == ["float32"]


@pytest.mark.parametrize("build", [ExactIndex, BM25Index])
def test_an_index_says_what_it_holds(tmp_path, build):
    if build is ExactIndex:
        vectors = np.eye(3, 4, dtype=np.float32)
        index = build.build(vectors, list("abc"), model_fingerprint="f" * 64)
    else:
        index = build.build(["a cat", "a dog", "a bird"], list("abc"))
    index.save(tmp_path / "index")

    report = inspect_folder(tmp_path / "index")

    assert report.loads_with.startswith("tf_samtone.retrieval.load_index")
    assert report.can_load
    assert report.facts["count"] == 3
    if build is ExactIndex:
        assert report.facts["model_fingerprint"] == "f" * 64


def test_a_training_checkpoint_is_named_but_has_no_loader(tmp_path):
    (tmp_path / "state").write_bytes(b"1")
    write_manifest(
        tmp_path,
        kind="training_checkpoint",
        format_version=1,
        fields={"step": 7},
    )

    report = inspect_folder(tmp_path)

    assert (report.kind, report.facts) == ("training_checkpoint", {"step": 7})
    assert (report.problems, report.can_load) == ((), False)


def test_the_known_versions_are_those_of_the_writers():
    versions = dict(_inspect_saved._VERSIONS)

    assert versions.pop("dual_encoder") == 2
    assert versions.pop("training_checkpoint") == CHECKPOINT_VERSION
    assert set(versions.values()) == {INDEX_VERSION}
    assert versions.keys() < FOLDER_KINDS.keys()


def test_a_run_is_described_by_its_model(folders, tmp_path):
    shutil.copytree(folders["dual_encoder", "sde"], tmp_path / "model")
    (tmp_path / "recipe.json").write_text("{}")

    report = inspect_folder(tmp_path)

    assert report.kind == "run"
    assert report.loads_with.endswith(f"({str(tmp_path / 'model')!r})")
    assert report.facts == inspect_folder(tmp_path / "model").facts


def test_a_run_without_a_model_has_that_problem(tmp_path):
    (tmp_path / "recipe.json").write_text("{}")

    report = inspect_folder(tmp_path)

    assert report.kind == "run"
    assert not report.can_load
    assert "manifest" in report.problems[0]


def test_a_saved_model_says_which_model_it_came_from(tmp_path):
    (tmp_path / "saved_model.pb").write_bytes(b"")
    (tmp_path / "assets.extra").mkdir()
    note = {"dim": 8, "model_fingerprint": "0" * 64}
    path = tmp_path / _inspect_saved.METADATA_FILE
    path.write_text(json.dumps(note))

    report = inspect_folder(tmp_path)

    assert (report.kind, report.facts) == ("saved_model", note)


def test_an_unknown_folder_names_what_is_in_it(tmp_path):
    T5Folder().write(tmp_path / "inner")
    (tmp_path / "notes.txt").write_text("")

    report = inspect_folder(tmp_path)

    assert (report.kind, report.can_load) == ("unknown", False)
    assert "['inner', 'notes.txt']" in report.problems[0]
    assert "Pass one of its folders ['inner']" in report.problems[0]


@pytest.mark.parametrize("name", ["absent", "file"])
def test_a_path_that_is_no_folder_is_an_error(tmp_path, name):
    (tmp_path / "file").write_text("")

    with pytest.raises(InvalidInputError, match=f"{name}'.*Check the path"):
        inspect_folder(tmp_path / name)


def test_a_report_is_made_without_tensorflow_and_torch(folders):
    program = (
        "import sys\n"
        "from tf_samtone.checkpoints import inspect_folder\n"
        "for folder in sys.argv[1:]:\n"
        "    assert inspect_folder(folder).can_load, folder\n"
        "heavy = {'tensorflow', 'keras', 'keras_hub', 'torch', 'jax'}\n"
        "print(sorted(heavy & sys.modules.keys()))\n"
    )
    arguments = [str(folder) for folder in folders.values()]

    output = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    assert output == "[]\n"
