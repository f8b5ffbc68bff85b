"""Tests of loading encoders and dual encoders from t5x checkpoints."""

import pathlib

import numpy as np
import pytest
from numpy_t5 import NumpyT5
from t5x_checkpoints import T5xCheckpoint, T5xWeights, stored_dtype

from tf_samtone.checkpoints import _assign
from tf_samtone.checkpoints._encoder_tensors import (
    encoder_tensors,
    encoder_variables,
)
from tf_samtone.checkpoints._t5x_arrays import T5xArrays
from tf_samtone.checkpoints._t5x_layout import read_t5x_size
from tf_samtone.checkpoints.t5x import load_t5x, load_t5x_encoder
from tf_samtone.errors import InvalidInputError, MismatchError
from tf_samtone.models import EncoderSize, LoadOptions
from tf_samtone.text import load_tokenizer

DATA = pathlib.Path(__file__).parents[1] / "data_files"
EMBEDDING = "token_embedder.embedding"
POSITIONS = "encoder.relpos_bias.rel_embedding"
QUERY = "encoder.layers_0.attention.query.kernel"
PROJECTION = "projection_layer.kernel"
WIDTH = 7


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(DATA / "tiny.spm")


@pytest.fixture
def save(tmp_path):
    """Return a function that writes weights and returns the folder."""

    def write(weights, **options) -> pathlib.Path:
        return T5xCheckpoint(**options).write(tmp_path / "t5x", weights)

    return write


def kernel(seed: int = 0, width: int = WIDTH) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.standard_normal((12, width)).astype(np.float32)


def asymmetric(own_embedding: bool = True, **options) -> dict:
    """Return weights of two towers, as ade_t5_1_1_flaxformer.gin has them."""
    weights = {}
    for seed, side in enumerate(("right", "left")):
        tower = T5xWeights(
            encoder=f"{side}_encoder",
            own_embedding=own_embedding,
            seed=seed,
            **options,
        )
        weights |= tower.make()
        weights[f"{side}_projection_layer.kernel"] = kernel(seed)
    return weights


def batch(length: int = 40) -> dict[str, np.ndarray]:
    """Return three rows of tokens of different lengths."""
    token_ids = np.random.default_rng(5).integers(3, 384, (3, length))
    lengths = np.array([[length], [(length + 1) // 2], [1]])
    mask = np.arange(length) < lengths
    return {"token_ids": token_ids * mask, "padding_mask": mask.astype(int)}


def assert_close(actual, expected) -> None:
    scale = np.abs(expected).max()
    assert np.abs(np.asarray(actual) - expected).max() <= 1e-5 * scale


def assert_tower_is(tower, weights, side: str = "") -> None:
    """Compare the embeddings of a tower with those of NumPy's T5."""
    oracle = NumpyT5(weights, "gelu", f"{side}encoder")
    projection = weights[f"{side}projection_layer.kernel"]
    expected = oracle.embeddings(*batch().values(), projection)
    assert_close(tower(batch()), expected)


@pytest.mark.parametrize("head_axes", [False, True], ids=["2-D", "3-D"])
@pytest.mark.parametrize(
    ("gated", "activation", "used"),
    [
        (True, None, "gelu"),
        (False, None, "relu"),
        (True, "relu", "relu"),
        (False, "gelu", "gelu"),
    ],
)
def test_embeddings_are_those_of_t5_by_definition(
    save, tokenizer, gated, activation, used, head_axes
):
    weights = T5xWeights(gated=gated, head_axes=head_axes).make()
    folder = save({**weights, PROJECTION: kernel()})
    model = load_t5x(folder, tokenizer, activation=activation)
    oracle = NumpyT5(weights, used)
    expected = oracle.embeddings(*batch().values(), kernel())
    assert_close(model.query_tower(batch()), expected)
    assert model.dim == WIDTH
    assert model.query_tower is model.document_tower


# A single token attends to itself alone: a softmax over one score.
@pytest.mark.filterwarnings("ignore:Exception encountered:UserWarning")
@pytest.mark.filterwarnings("ignore:You are using a softmax:UserWarning")
@pytest.mark.parametrize("length", [1, 17, 150])
def test_hidden_states_are_those_of_t5_at_every_length(save, length):
    weights = T5xWeights(layers=3).make()
    encoder = load_t5x_encoder(save(weights))
    inputs = batch(length)
    mask = inputs["padding_mask"][:, :, None]
    expected = NumpyT5(weights, "gelu").hidden_states(*inputs.values())
    assert_close(encoder(inputs) * mask, expected * mask)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_weights_are_equal_to_the_stored_ones(save, dtype):
    weights = T5xWeights().make()
    encoder = load_t5x_encoder(save(weights, dtype=dtype, chunk_rows=5))
    tensors = encoder_tensors(EncoderSize.of_encoder(encoder))
    variables = encoder_variables(encoder)
    for tensor, variable in zip(tensors, variables, strict=True):
        expected = weights[tensor.t5x].astype(stored_dtype(dtype))
        expected = expected.T if tensor.t5x == POSITIONS else expected
        np.testing.assert_array_equal(variable.numpy(), expected)


@pytest.mark.parametrize("head_axes", [False, True], ids=["2-D", "3-D"])
def test_weights_are_equal_when_copied_in_small_parts(
    save, monkeypatch, head_axes
):
    weights = T5xWeights(head_axes=head_axes).make()
    folder = save(weights, chunk_rows=4)
    whole = load_t5x_encoder(folder)
    # Three rows of the output kernel: less than a head has.
    monkeypatch.setattr(_assign, "_CHUNK_BYTES", 3 * 4 * 12)
    parts = load_t5x_encoder(folder)
    for one, other in zip(whole.weights, parts.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())


def test_sizes_are_inferred_from_the_shapes(save):
    size = read_t5x_size(T5xArrays(save(T5xWeights(layers=3).make())))
    assert size == EncoderSize(
        vocabulary_size=384,
        num_layers=3,
        num_heads=2,
        hidden_dim=12,
        intermediate_dim=20,
        key_value_dim=5,
        activation="gelu",
        use_gated_activation=True,
    )


@pytest.mark.parametrize("own_embedding", [True, False])
def test_embeddings_may_be_named_inside_the_encoder(save, own_embedding):
    weights = T5xWeights(own_embedding=own_embedding).make()
    encoder = load_t5x_encoder(save(weights))
    name = f"encoder.{EMBEDDING}" if own_embedding else EMBEDDING
    table = encoder.token_embedding.embeddings.numpy()
    np.testing.assert_array_equal(table, weights[name])


def test_a_plain_t5_gets_a_new_projection_and_loses_its_decoder(
    save, tokenizer
):
    decoder = {
        "decoder.decoder_norm.scale": np.ones(12, np.float32),
        "decoder.logits_dense.kernel": np.ones((12, 384), np.float32),
    }
    weights = T5xWeights().make()
    folder = save(weights | decoder)
    model = load_t5x(folder, tokenizer, LoadOptions(projection_dim=5))
    assert model.dim == 5
    table = model.query_tower.encoder.token_embedding.embeddings.numpy()
    np.testing.assert_array_equal(table, weights[EMBEDDING])


def test_weights_of_one_tower_start_both(save, tokenizer):
    weights = {**T5xWeights().make(), PROJECTION: kernel()}
    options = LoadOptions(architecture="ade")
    model = load_t5x(save(weights), tokenizer, options)
    assert model.query_tower is not model.document_tower
    assert_tower_is(model.query_tower, weights)
    assert_tower_is(model.document_tower, weights)


def test_a_left_tower_is_that_of_queries_and_a_right_one_of_documents(
    save, tokenizer
):
    weights = asymmetric()
    model = load_t5x(save(weights), tokenizer)
    assert model.architecture == "ade"
    assert_tower_is(model.query_tower, weights, "left_")
    assert_tower_is(model.document_tower, weights, "right_")


def test_towers_that_share_embeddings_become_ade_ste(save, tokenizer):
    weights = asymmetric(own_embedding=False)
    model = load_t5x(save(weights), tokenizer)
    assert model.architecture == "ade-ste"
    assert_tower_is(model.query_tower, weights, "left_")
    assert_tower_is(model.document_tower, weights, "right_")


def test_two_towers_without_projections_take_a_width(save, tokenizer):
    weights = {k: v for k, v in asymmetric().items() if "projection" not in k}
    folder = save(weights)
    assert load_t5x(folder, tokenizer, LoadOptions(projection_dim=0)).dim == 12


def test_options_reach_the_model(save, tokenizer):
    options = LoadOptions(
        query_length=9,
        document_length=11,
        query_prefix="query: ",
        dropout=0.25,
        dtype="mixed_bfloat16",
    )
    weights = {**T5xWeights().make(), PROJECTION: kernel()}
    model = load_t5x(save(weights), tokenizer, options)
    assert model.query_preprocessor.sequence_length == 9
    assert model.document_preprocessor.sequence_length == 11
    assert model.query_preprocessor.prefix == "query: "
    assert model.query_tower.encoder.dropout == 0.25
    assert model.query_tower.encoder.compute_dtype == "bfloat16"
    # The stored values, whatever the compute dtype.
    np.testing.assert_array_equal(
        model.query_tower.projection.kernel.numpy(), kernel()
    )


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (
            {**T5xWeights().make(), PROJECTION: kernel()},
            {"projection_dim": 768},
            "projection_dim=7",
        ),
        (asymmetric(), {"architecture": "sde"}, "architecture='ade'"),
    ],
    ids=["projection", "architecture"],
)
def test_options_that_contradict_the_weights_are_refused(
    save, tokenizer, weights, options, message
):
    with pytest.raises(MismatchError, match=message):
        load_t5x(save(weights), tokenizer, LoadOptions(**options))


def test_a_missing_tokenizer_is_explained(save):
    with pytest.raises(InvalidInputError, match="load_tokenizer"):
        load_t5x(save(T5xWeights().make()), None)


def test_a_tokenizer_with_too_many_pieces_is_refused(save, tokenizer):
    weights = T5xWeights().make()
    weights[EMBEDDING] = weights[EMBEDDING][:100]
    with pytest.raises(InvalidInputError, match="vocabulary_size=100"):
        load_t5x(save(weights), tokenizer)


def test_an_unknown_activation_is_refused(save):
    folder = save(T5xWeights().make())
    with pytest.raises(InvalidInputError, match="activation='silu'"):
        load_t5x_encoder(folder, activation="silu")


def test_missing_and_surplus_weights_are_named(save):
    weights = T5xWeights().make()
    del weights["encoder.encoder_norm.scale"]
    weights["encoder.layers_1.attention.query.bias"] = np.ones(10, np.float32)
    message = (
        r"missing=\['encoder\.encoder_norm\.scale'\], "
        r"surplus=\['encoder\.layers_1\.attention\.query\.bias'\]"
    )
    with pytest.raises(MismatchError, match=message):
        load_t5x_encoder(save(weights))


def test_a_gap_in_the_layers_is_named(save):
    weights = T5xWeights(layers=3).make()
    gap = {k: v for k, v in weights.items() if ".layers_1." not in k}
    with pytest.raises(MismatchError, match=r"missing=.*layers_1\.mlp\.wo"):
        load_t5x_encoder(save(gap))


@pytest.mark.parametrize(
    ("name", "shape", "expected"),
    [
        ("encoder.layers_1.mlp.wo.kernel", (20, 13), r"\(20, 12\)"),
        ("encoder.layers_1.attention.out.kernel", (5, 2, 12), r"\(10, 12\)"),
        ("encoder.encoder_norm.scale", (13,), r"\(12,\)"),
        (PROJECTION, (13, 7), r"\(12, 7\)"),
    ],
)
def test_a_weight_of_another_shape_is_named(save, name, shape, expected):
    weights = {**T5xWeights().make(), PROJECTION: kernel()}
    weights[name] = np.ones(shape, np.float32)
    received = str(shape).replace("(", r"\(").replace(")", r"\)")
    message = f"Expected {name} of shape {expected}.*shape={received}"
    with pytest.raises(MismatchError, match=message):
        load_t5x_encoder(save(weights))


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        # Names of scanned layers: flaxformer's and scalable_t5's.
        ("encoder.encoder.mlp.wo.kernel", (20, 2, 12), "scan_layers=False"),
        ("encoder.layers.mlp.wo.kernel", (20, 2, 12), "scan_layers=False"),
        (POSITIONS, (2, 16), "32 buckets"),
        (POSITIONS, (3, 32), "for 3 heads"),
        (QUERY, (12,), "with 2 or 3 axes"),
    ],
)
def test_encoders_of_another_kind_are_refused(save, name, shape, message):
    weights = {**T5xWeights().make(), name: np.ones(shape, np.float32)}
    with pytest.raises(MismatchError, match=message):
        load_t5x_encoder(save(weights))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (POSITIONS, "encoder.layers_0.relpos_bias.rel_embedding", "per layer"),
        (
            "encoder.layers_0.mlp.wi_0.kernel",
            "encoder.layers_0.mlp.wi_fused.kernel",
            r"mlp\.wi\.kernel.*wi_fused.*Fused",
        ),
    ],
)
def test_other_forms_of_one_weight_are_refused(save, old, new, message):
    weights = T5xWeights().make()
    weights[new] = weights.pop(old)
    with pytest.raises(MismatchError, match=message):
        load_t5x_encoder(save(weights))


def test_a_checkpoint_without_an_encoder_is_refused(save):
    with pytest.raises(MismatchError, match=r"named `encoder\.\*`"):
        load_t5x_encoder(save({"dense.kernel": kernel()}))


def test_two_encoders_are_not_loaded_as_one(save):
    with pytest.raises(MismatchError, match="`load_t5x`"):
        load_t5x_encoder(save(asymmetric()))


def test_towers_of_different_sizes_are_refused(save, tokenizer):
    small = T5xWeights(encoder="left_encoder", own_embedding=True, layers=1)
    weights = asymmetric()
    weights = {k: v for k, v in weights.items() if "left_encoder" not in k}
    with pytest.raises(MismatchError, match="two towers of one size"):
        load_t5x(save(weights | small.make()), tokenizer)


@pytest.mark.parametrize("changed", [None, kernel(width=5), kernel()[0]])
def test_towers_with_different_projections_are_refused(
    save, tokenizer, changed
):
    weights = asymmetric()
    weights["left_projection_layer.kernel"] = changed
    present = {k: v for k, v in weights.items() if v is not None}
    with pytest.raises(MismatchError, match="of one width in every tower"):
        load_t5x(save(present), tokenizer)


def test_a_loaded_model_is_saved_and_loaded_bit_for_bit(
    save, tokenizer, tmp_path
):
    model = load_t5x(save(asymmetric()), tokenizer)
    model.save_to_preset(tmp_path / "ours")
    again = type(model).from_preset(tmp_path / "ours")
    for one, other in zip(model.weights, again.weights, strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy())
