"""Dual encoders on disk."""

import json
import shutil
from pathlib import Path

import keras
import keras_hub
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone._files import write_manifest
from tf_samtone.checkpoints import load_hugging_face_t5
from tf_samtone.errors import (
    CorruptFileError,
    InvalidInputError,
    MismatchError,
    OutputExistsError,
)
from tf_samtone.losses import SamToNeLoss
from tf_samtone.models import ARCHITECTURES, DualEncoder, projection_layer

DATA_FILES = Path(__file__).resolve().parent.parent / "data_files"
TEXTS = ["a cat", "", "the small dog reads a long book at night"]


def diverged(model, seed=0):
    """Move every weight, so that both towers and all parts differ."""
    generator = np.random.default_rng(seed)
    for weight in model.weights:
        noise = 0.1 * generator.normal(size=weight.shape)
        weight.assign(weight.numpy() + noise)
    return model


def both_sides(model):
    return np.stack(
        [model.encode_queries(TEXTS), model.encode_documents(TEXTS)]
    )


@pytest.fixture(scope="module")
def saved(make_tiny_dual_encoder, tmp_path_factory):
    """A model that no test changes, and its folder."""
    model = diverged(make_tiny_dual_encoder("ade"))
    folder = tmp_path_factory.mktemp("presets") / "ade"
    model.save_to_preset(folder)
    return model, folder


@pytest.fixture
def copied(saved, tmp_path):
    return Path(shutil.copytree(saved[1], tmp_path / "copy"))


@pytest.fixture(params=["t5_tiny_relu", "t5_tiny_gated_gelu"])
def t5_folder(request, tmp_path):
    """A Hugging Face folder with its vocabulary."""
    folder = Path(shutil.copytree(DATA_FILES / request.param, tmp_path / "t5"))
    shutil.copy(DATA_FILES / "tiny.spm", folder / "spiece.model")
    return folder


# === Round trip ===


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_round_trip_keeps_every_bit(
    make_tiny_dual_encoder, tmp_path, architecture
):
    model = diverged(make_tiny_dual_encoder(architecture))
    model.save_to_preset(tmp_path / "model")
    copy = DualEncoder.from_preset(tmp_path / "model")
    assert copy.architecture == architecture
    for actual, expected in zip(copy.weights, model.weights, strict=True):
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))
    assert copy.fingerprint() == model.fingerprint()
    frozen = [weight.path for weight in copy.non_trainable_weights]
    assert frozen == [weight.path for weight in model.non_trainable_weights]


def test_a_round_trip_keeps_the_settings(make_tiny_dual_encoder, tmp_path):
    model = make_tiny_dual_encoder(
        projection_dim=5, query_length=3, document_length=9
    )
    model.save_to_preset(str(tmp_path / "model"))
    copy = DualEncoder.from_preset(str(tmp_path / "model"))
    assert copy.dim == 5
    assert copy.query_preprocessor.sequence_length == 3
    assert copy.document_preprocessor.sequence_length == 9
    assert copy.tokenizer.proto == model.tokenizer.proto
    assert (
        copy.query_tower.encoder.get_config()
        == model.query_tower.encoder.get_config()
    )


def test_a_trained_and_compiled_model_round_trips(
    make_tiny_dual_encoder, tmp_path
):
    model = make_tiny_dual_encoder()
    model.compile(
        keras.optimizers.Adam(0.01),
        SamToNeLoss(),
        metrics=[keras.metrics.MeanSquaredError()],
        run_eagerly=True,
    )
    pairs = tf.data.Dataset.from_tensor_slices((TEXTS, TEXTS[::-1])).batch(3)
    model.fit(pairs, verbose=0)
    model.save_to_preset(tmp_path / "model")
    copy = DualEncoder.from_preset(tmp_path / "model")
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))


def test_lengths_may_be_chosen_anew(saved):
    _, folder = saved
    copy = DualEncoder.from_preset(folder, query_length=3, document_length=20)
    assert copy.query_preprocessor.sequence_length == 3
    assert copy.document_preprocessor.sequence_length == 20


def test_another_dropout_keeps_the_embeddings(saved):
    model, folder = saved
    copy = DualEncoder.from_preset(folder, dropout=0.4)
    rates = [t.encoder.dropout for t in (copy.query_tower, copy.document_tower)]
    assert rates == [0.4, 0.4]
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))
    assert copy.fingerprint() == model.fingerprint()


def test_dropout_may_be_switched_on_and_acts(
    make_tiny_encoder, tmp_path, make_tiny_dual_encoder
):
    encoder = make_tiny_encoder(dropout=0.0, num_layers=1)
    make_tiny_dual_encoder(encoder=encoder).save_to_preset(tmp_path / "m")
    copy = DualEncoder.from_preset(tmp_path / "m", dropout=0.5)
    features = copy.query_preprocessor(["a cat"])
    noisy = copy.query_tower(features, training=True)
    assert np.abs(noisy - copy.query_tower(features)).max() > 1e-3


def test_bfloat16_keeps_the_direction_of_the_embeddings(saved):
    model, folder = saved
    copy = DualEncoder.from_preset(folder, dtype="mixed_bfloat16")
    assert copy.query_tower.encoder.compute_dtype == "bfloat16"
    cosines = (both_sides(copy) * both_sides(model)).sum(-1)
    assert cosines.min() >= 0.999
    assert copy.fingerprint() == model.fingerprint()


def test_a_model_saved_in_bfloat16_loads_in_float32(
    make_tiny_encoder, make_tiny_dual_encoder, tmp_path
):
    encoder = make_tiny_encoder(num_layers=1, dtype="mixed_bfloat16")
    make_tiny_dual_encoder(encoder=encoder).save_to_preset(tmp_path / "m")
    copy = DualEncoder.from_preset(tmp_path / "m")
    assert copy.query_tower.encoder.compute_dtype == "float32"


# === Fingerprint ===


def test_the_fingerprint_is_a_sha256(saved):
    model, folder = saved
    assert len(bytes.fromhex(model.fingerprint())) == 32
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["fields"]["fingerprint"] == model.fingerprint()


@pytest.mark.parametrize("index", [0, 5, -1])
def test_the_fingerprint_changes_with_any_weight(make_tiny_dual_encoder, index):
    model = make_tiny_dual_encoder("ade")
    before = model.fingerprint()
    weight = model.weights[index]
    value = weight.numpy()
    value.flat[-1] = np.nextafter(value.flat[-1], np.float32(9))
    weight.assign(value)
    assert model.fingerprint() != before


@pytest.mark.parametrize(
    "option", [{"query_length": 7}, {"document_length": 11}], ids=str
)
def test_the_fingerprint_changes_with_a_length(make_tiny_dual_encoder, option):
    model = make_tiny_dual_encoder()
    assert make_tiny_dual_encoder(**option).fingerprint() != model.fingerprint()


def test_the_fingerprint_changes_with_the_vocabulary(make_tiny_dual_encoder):
    model = make_tiny_dual_encoder()
    before = model.fingerprint()
    # An unknown field at the end leaves a valid SentencePiece model.
    proto = model.tokenizer.proto + b"\xf8\x7f\x01"
    model.query_preprocessor.tokenizer = keras_hub.models.T5Tokenizer(
        proto=proto
    )
    assert model.fingerprint() != before


# === Hugging Face and KerasHub weights ===


def test_a_hugging_face_folder_starts_a_model(t5_folder):
    model = DualEncoder.from_preset(t5_folder, projection_dim=24)
    expected = load_hugging_face_t5(t5_folder)
    for actual, weight in zip(
        model.query_tower.encoder.weights, expected.weights, strict=True
    ):
        np.testing.assert_array_equal(actual.numpy(), weight.numpy())
    assert (model.architecture, model.dim) == ("sde", 24)
    assert model.query_preprocessor.sequence_length == 64
    assert model.document_preprocessor.sequence_length == 256


def test_t5_weights_take_every_option(t5_folder):
    model = DualEncoder.from_preset(
        str(t5_folder),
        architecture="ade-spl",
        projection_dim=5,
        query_length=4,
        document_length=6,
        dropout=0.3,
        dtype="mixed_bfloat16",
    )
    assert (model.architecture, model.dim) == ("ade-spl", 5)
    assert model.query_preprocessor.sequence_length == 4
    assert model.document_preprocessor.sequence_length == 6
    for tower in (model.query_tower, model.document_tower):
        assert tower.encoder.dropout == 0.3
        assert tower.encoder.dtype_policy.name == "mixed_bfloat16"
    assert model.query_tower.projection is model.document_tower.projection


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"architecture": "siamese"}, "'ade-fte'.*'siamese'"),
        ({"projection_dim": -1}, "`projection_dim`, an int >= 0"),
    ],
    ids=["architecture", "width"],
)
def test_bad_options_are_refused_before_weights_are_read(
    tmp_path, option, message
):
    # The folder is empty: a message about its files would come too early.
    with pytest.raises(InvalidInputError, match=message):
        DualEncoder.from_preset(tmp_path, **option)


def test_float16_is_refused(t5_folder):
    with pytest.raises(InvalidInputError, match="mixed_bfloat16"):
        DualEncoder.from_preset(t5_folder, dtype="mixed_float16")


@pytest.mark.parametrize("preset", ["t5_1.1_smal", "no/such/folder"])
def test_an_unknown_preset_lists_what_is_accepted(preset):
    with pytest.raises(InvalidInputError) as error:
        DualEncoder.from_preset(preset)
    for part in ("folder", "t5_1.1_small", repr(preset)):
        assert part in str(error.value)


@pytest.mark.parametrize("contents", ["nothing", "notes"])
def test_a_folder_without_a_model_says_what_is_accepted(tmp_path, contents):
    if contents == "notes":
        (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidInputError) as error:
        DualEncoder.from_preset(tmp_path)
    for part in ("save_to_preset", "model.safetensors", str(tmp_path)):
        assert part in str(error.value)


def test_a_folder_without_a_vocabulary_is_refused(t5_folder):
    (t5_folder / "spiece.model").unlink()
    with pytest.raises(InvalidInputError, match=r"spiece\.model"):
        DualEncoder.from_preset(t5_folder)


# The backbone of KerasHub warns that it does not support masks.
@pytest.mark.filterwarnings("ignore:Layer '.*' .of type T5:UserWarning")
def test_a_keras_hub_folder_starts_a_model(tmp_path, make_tiny_dual_encoder):
    backbone = keras_hub.models.T5Backbone(
        vocabulary_size=384,
        num_layers=1,
        num_heads=2,
        hidden_dim=16,
        intermediate_dim=24,
        activation="relu",
    )
    backbone.save_to_preset(tmp_path / "t5")
    make_tiny_dual_encoder().tokenizer.save_to_preset(tmp_path / "t5")
    model = DualEncoder.from_preset(tmp_path / "t5", projection_dim=5)
    np.testing.assert_array_equal(
        model.query_tower.encoder.token_embedding.embeddings.numpy(),
        backbone.token_embedding.embeddings.numpy(),
    )
    assert model.encode_queries(TEXTS).shape == (3, 5)


# === Damage and contradictions ===


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "model.weights.h5",
        "assets/tokenizer/vocabulary.spm",
        "manifest.json",
    ],
)
def test_a_flipped_byte_is_refused(copied, name):
    data = bytearray((copied / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copied / name).write_bytes(data)
    with pytest.raises(CorruptFileError, match=Path(name).name):
        DualEncoder.from_preset(copied)


def test_a_missing_weights_file_is_refused(copied):
    (copied / "model.weights.h5").unlink()
    with pytest.raises(CorruptFileError, match=r"model\.weights\.h5"):
        DualEncoder.from_preset(copied)


@pytest.mark.parametrize(
    "option", [{"projection_dim": 9}, {"architecture": "sde"}], ids=str
)
def test_what_the_saved_model_fixes_cannot_be_changed(saved, option):
    ((name, value),) = option.items()
    with pytest.raises(MismatchError, match=f"Received: {name}={value!r}"):
        DualEncoder.from_preset(saved[1], **option)


def test_repeating_what_the_saved_model_fixes_is_fine(saved):
    model, folder = saved
    copy = DualEncoder.from_preset(
        folder, architecture="ade", projection_dim=model.dim
    )
    assert copy.fingerprint() == model.fingerprint()


def test_weights_of_another_width_than_the_config_are_refused(copied):
    config = json.loads((copied / "config.json").read_text())
    config["projection_dim"] = 9
    (copied / "config.json").write_text(json.dumps(config))
    write_manifest(copied, kind="dual_encoder", format_version=1, fields={})
    with pytest.raises(MismatchError, match="projection_dim=9"):
        DualEncoder.from_preset(copied)


def test_a_folder_of_another_kind_is_refused(copied):
    write_manifest(copied, kind="exact_index", format_version=1, fields={})
    with pytest.raises(MismatchError, match="exact_index"):
        DualEncoder.from_preset(copied)


def test_a_folder_with_files_is_not_overwritten(saved, copied):
    before = sorted(p.name for p in copied.iterdir())
    with pytest.raises(OutputExistsError, match="overwrite=True"):
        saved[0].save_to_preset(copied)
    assert sorted(p.name for p in copied.iterdir()) == before


def test_a_folder_is_overwritten_when_told_to(make_tiny_dual_encoder, copied):
    (copied / "notes.txt").write_text("mine")
    model = make_tiny_dual_encoder("sde", seed=5)
    model.save_to_preset(copied, overwrite=True)
    assert DualEncoder.from_preset(copied).fingerprint() == model.fingerprint()
    assert not (copied / "notes.txt").exists()


def test_an_interrupted_save_leaves_nothing(saved, tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("tf_samtone.models.presets.write_manifest", fail)
    with pytest.raises(OSError, match="disk full"):
        saved[0].save_to_preset(tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "options",
    [
        {"projection_dim": 0},
        {"normalize": False},
        {"query_prefix": "find: ", "document_prefix": "text: "},
    ],
    ids=["no_projection", "no_normalization", "prefixes"],
)
def test_unusual_options_survive_saving(
    make_tiny_dual_encoder, tmp_path, architecture, options
):
    model = diverged(make_tiny_dual_encoder(architecture, **options))
    model.save_to_preset(tmp_path / "model")
    copy = DualEncoder.from_preset(tmp_path / "model")
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))
    assert copy.fingerprint() == model.fingerprint()


def test_bias_and_activation_of_the_projection_survive_saving(
    make_tiny_dual_encoder, tmp_path
):
    projection = projection_layer(8, use_bias=True, activation="tanh")
    model = diverged(make_tiny_dual_encoder("ade", projection=projection))
    model.save_to_preset(tmp_path / "model")
    copy = DualEncoder.from_preset(tmp_path / "model")
    np.testing.assert_array_equal(both_sides(copy), both_sides(model))


def test_a_prefix_changes_embedding_and_fingerprint(make_tiny_dual_encoder):
    plain = make_tiny_dual_encoder()
    prefixed = make_tiny_dual_encoder(query_prefix="find: ")
    np.testing.assert_array_equal(
        prefixed.encode_queries(["a cat"]),
        plain.encode_queries(["find: a cat"]),
    )
    np.testing.assert_array_equal(
        prefixed.encode_documents(["a cat"]), plain.encode_documents(["a cat"])
    )
    assert prefixed.fingerprint() != plain.fingerprint()


def test_a_model_of_other_lengths_than_one_cannot_be_trained(
    make_tiny_dual_encoder,
):
    model = make_tiny_dual_encoder(normalize=False)
    with pytest.raises(InvalidInputError, match="normalize=True"):
        model.compile(loss=SamToNeLoss())


def test_normalization_can_be_asked_for_at_loading(
    make_tiny_dual_encoder, tmp_path
):
    make_tiny_dual_encoder(normalize=False).save_to_preset(tmp_path / "model")
    model = DualEncoder.from_preset(tmp_path / "model", normalize=True)
    lengths = np.linalg.norm(model.encode_queries(TEXTS), axis=-1)
    np.testing.assert_allclose(lengths, np.ones(3), rtol=1e-5)


def test_another_prefix_can_be_chosen_at_loading(saved):
    model = DualEncoder.from_preset(saved[1], query_prefix="find: ")
    np.testing.assert_array_equal(
        model.encode_queries(["a cat"]),
        saved[0].encode_queries(["find: a cat"]),
    )
