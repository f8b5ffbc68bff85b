"""What a SavedModel computes, and what is refused."""

import json
import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError, OutputExistsError
from tf_samtone.export import export_saved_model
from tf_samtone.export._text_module import TextModule, _encoder
from tf_samtone.models import DualEncoder

# Empty, short, longer than both limits, and not valid UTF-8.
TEXTS = [
    b"",
    b"who wrote hamlet",
    b"a long question about the capital of a large country " * 4,
    b"caf\xc3\xa9 \xff broken",
]


@pytest.fixture(scope="module")
def shared_folder(shared_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared") / "1"
    export_saved_model(shared_model, folder)
    return folder


@pytest.fixture(scope="module")
def separate_folder(separate_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("separate") / "1"
    export_saved_model(separate_model, folder)
    return folder


@pytest.fixture(scope="module")
def loaded(separate_folder):
    return tf.saved_model.load(str(separate_folder))


def _in_clean_process(program: str, *arguments: str) -> dict:
    """Runs a program that prints JSON, without this library on its path."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", program, *arguments],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_process_with_only_tensorflow_and_its_text_ops_agrees(
    separate_model, separate_folder
):
    program = """
import json, sys
import tensorflow as tf
import tensorflow_text
loaded = tf.saved_model.load(sys.argv[1])
texts = tf.constant([bytes.fromhex(t) for t in sys.argv[2:]])
report = {"called": loaded(texts).numpy().tolist()}
for name, signature in loaded.signatures.items():
    report[name] = signature(inputs=texts)["embeddings"].numpy().tolist()
report["modules"] = [n for n in sys.modules if n.startswith("tf_samtone")]
print(json.dumps(report))
"""
    report = _in_clean_process(
        program, str(separate_folder), *[text.hex() for text in TEXTS]
    )

    queries = separate_model.encode_queries(TEXTS)
    documents = separate_model.encode_documents(TEXTS)
    assert report.pop("modules") == []
    expected = {
        "called": queries,
        "serving_default": queries,
        "encode_queries": queries,
        "encode_documents": documents,
    }
    assert set(report) == set(expected)
    np.testing.assert_allclose(
        np.array([report[name] for name in sorted(expected)]),
        np.array([expected[name] for name in sorted(expected)]),
        atol=1e-5,
    )
    assert np.abs(queries - documents).max() > 1e-2


def test_tensorflow_hub_loads_the_folder(shared_model, shared_folder):
    program = """
import json, sys
import tensorflow_hub as hub
import tensorflow_text
loaded = hub.load(sys.argv[1])
print(json.dumps({"embeddings": loaded(["who wrote hamlet"]).numpy().tolist(),
                  "variables": len(loaded.variables),
                  "trainable": len(loaded.trainable_variables)}))
"""
    report = _in_clean_process(program, str(shared_folder))

    np.testing.assert_allclose(
        report["embeddings"],
        shared_model.encode_queries(["who wrote hamlet"]),
        atol=1e-5,
    )
    assert report["variables"] == len(shared_model.weights)
    assert report["trainable"] == len(shared_model.trainable_weights)


def test_keras_tfsm_layer_serves_queries(separate_model, separate_folder):
    layer = keras.layers.TFSMLayer(str(separate_folder), call_endpoint="serve")

    np.testing.assert_allclose(
        layer(tf.constant(TEXTS)),
        separate_model.encode_queries(TEXTS),
        atol=1e-5,
    )


def test_an_embedding_does_not_depend_on_its_batch(loaded):
    alone = np.concatenate([loaded(tf.constant([text])) for text in TEXTS])

    np.testing.assert_allclose(loaded(tf.constant(TEXTS)), alone, atol=1e-5)


def test_an_empty_batch_gives_an_empty_matrix(loaded):
    assert loaded(tf.constant([], tf.string)).shape == (0, 24)


@pytest.mark.parametrize(
    "name", ["serving_default", "encode_queries", "encode_documents"]
)
def test_signatures_name_their_input_and_output(loaded, name):
    signature = loaded.signatures[name]

    assert signature.structured_input_signature[1] == {
        "inputs": tf.TensorSpec([None], tf.string, name="inputs")
    }
    assert signature.structured_outputs == {
        "embeddings": tf.TensorSpec([None, 24], tf.float32, name="embeddings")
    }


def test_a_short_batch_is_not_padded_to_the_limit(separate_model):
    widths = []

    def tower(features, training):
        widths.append(features["token_ids"].shape[1])
        return tf.zeros([2, 24])

    preprocessor = separate_model.document_preprocessor
    texts = tf.constant(["a", "whale"])
    _encoder(preprocessor, tower)(texts)

    lengths = preprocessor.tokenize(texts).row_lengths()
    assert widths == [max(lengths.numpy())]
    assert widths[0] < 12


def test_a_model_that_computes_in_bfloat16_still_returns_float32(
    preset, tmp_path
):
    model = DualEncoder.from_preset(str(preset), dtype="mixed_bfloat16")

    export_saved_model(model, tmp_path / "1")

    embeddings = tf.saved_model.load(str(tmp_path / "1"))(TEXTS)
    assert embeddings.dtype == tf.float32
    # bfloat16 has 8 significant bits, so unit vectors differ by about 1e-2.
    np.testing.assert_allclose(
        embeddings, model.encode_queries(TEXTS), atol=2e-2
    )


def test_the_fingerprint_of_the_model_travels_along(
    shared_model, shared_folder
):
    path = shared_folder / "assets.extra" / "tf_samtone.json"
    metadata = json.loads(path.read_text())

    assert metadata["model_fingerprint"] == shared_model.fingerprint()
    assert metadata["dim"] == 24
    assert metadata["query_length"] == 6
    assert metadata["document_length"] == 12


def test_a_folder_in_use_is_refused_and_left_alone(shared_model, tmp_path):
    (tmp_path / "kept").write_text("mine")

    with pytest.raises(OutputExistsError, match="already holds files"):
        export_saved_model(shared_model, tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["kept"]


def test_a_folder_in_use_is_replaced_when_asked_to(shared_model, tmp_path):
    (tmp_path / "old").write_text("old")

    export_saved_model(shared_model, tmp_path, overwrite=True)

    assert not (tmp_path / "old").exists()
    assert (tmp_path / "saved_model.pb").is_file()


def test_a_failed_export_leaves_nothing_behind(
    shared_model, tmp_path, monkeypatch
):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(tf.saved_model, "save", fail)

    with pytest.raises(OSError, match="disk full"):
        export_saved_model(shared_model, tmp_path / "1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", [np.nan, np.inf], ids=["nan", "inf"])
def test_a_weight_that_is_not_finite_is_refused(shared_model, tmp_path, value):
    weight = shared_model.trainable_weights[-1]
    before = weight.numpy()
    broken = before.copy()
    broken.flat[0] = value
    weight.assign(broken)
    try:
        with pytest.raises(InvalidInputError, match="to be finite"):
            export_saved_model(shared_model, tmp_path / "1")
    finally:
        weight.assign(before)
    assert list(tmp_path.iterdir()) == []


def test_frozen_weights_are_variables_but_not_trainable(shared_model):
    embedding = shared_model.query_tower.encoder.token_embedding
    embedding.trainable = False
    try:
        module = TextModule(shared_model)
    finally:
        embedding.trainable = True

    assert len(module.trainable_variables) == len(module.variables) - 1


def test_a_model_without_weights_is_refused(
    shared_model, tmp_path, monkeypatch
):
    monkeypatch.setattr(DualEncoder, "weights", [])

    with pytest.raises(InvalidInputError, match="Expected a built model"):
        export_saved_model(shared_model, tmp_path / "1")


def test_anything_but_a_dual_encoder_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="Received: Sequential"):
        export_saved_model(keras.Sequential(), tmp_path / "1")
