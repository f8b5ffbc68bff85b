"""Tests of one tower as a text embedder of KerasHub."""

import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.models import T5TextEmbedder, T5TextEmbedderPreprocessor
from tf_samtone.text import load_tokenizer

VOCABULARY = pathlib.Path(__file__).parents[1] / "data_files" / "tiny.spm"
TEXTS = ["a cat", "", "the small dog reads a long book at night"]


@pytest.fixture(scope="module")
def preprocessor():
    return T5TextEmbedderPreprocessor(
        load_tokenizer(VOCABULARY), sequence_length=9, prefix="ask: "
    )


@pytest.fixture(scope="module")
def encoder(make_tiny_encoder):
    return make_tiny_encoder(0, num_layers=1)


def by_hand(embedder, features, activation=np.tanh) -> np.ndarray:
    """Return mean, projection and unit length, in float64."""
    states = np.float64(embedder.backbone(features))
    mask = np.float64(features["padding_mask"])[..., None]
    mean = (states * mask).sum(1) / mask.sum(1)
    if embedder.projection is not None:
        kernel, *bias = map(np.float64, embedder.projection.get_weights())
        mean = activation(mean @ kernel + (bias[0] if bias else 0))
    if embedder.normalize:
        mean /= np.linalg.norm(mean, axis=1, keepdims=True)
    return mean


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("projection_dim", [0, 5])
@pytest.mark.parametrize("bias", [True, False])
def test_it_pools_projects_and_scales(
    encoder, preprocessor, normalize, projection_dim, bias
):
    embedder = T5TextEmbedder(
        encoder,
        preprocessor,
        projection_dim=projection_dim,
        projection_bias=bias,
        projection_activation="tanh",
        normalize=normalize,
    )
    if bias and projection_dim:
        # Zeros at first, so that leaving it out would not be noticed.
        embedder.projection.bias.assign(np.arange(projection_dim) / 3)
    features = preprocessor(TEXTS)

    embeddings = embedder.encode_text(TEXTS)

    assert embeddings.dtype == np.float32
    assert embeddings.shape == (3, embedder.dim)
    np.testing.assert_allclose(
        embeddings, by_hand(embedder, features), atol=1e-5
    )


def test_padding_has_no_part_in_an_embedding(encoder, preprocessor):
    embedder = T5TextEmbedder(encoder, preprocessor, projection_dim=5)
    features = preprocessor(["a cat"])
    length = int(np.sum(features["padding_mask"]))

    padded = embedder(features)
    short = embedder({k: v[:, :length] for k, v in features.items()})

    assert length < 9
    np.testing.assert_allclose(padded, short, atol=1e-6)


def test_documents_have_their_own_length_and_prefix(encoder, preprocessor):
    embedder = T5TextEmbedder(
        encoder, preprocessor, document_length=4, document_prefix="read: "
    )
    other = T5TextEmbedder(
        encoder,
        T5TextEmbedderPreprocessor(
            preprocessor.tokenizer, sequence_length=4, prefix="read: "
        ),
    )

    documents = embedder.encode_documents(TEXTS)

    np.testing.assert_allclose(documents, other.encode_text(TEXTS), atol=1e-6)
    assert np.abs(documents - embedder.encode_text(TEXTS)).max() > 1e-3


def test_documents_are_read_like_queries_unless_told_otherwise(
    encoder, preprocessor
):
    embedder = T5TextEmbedder(encoder, preprocessor)

    np.testing.assert_array_equal(
        embedder.encode_documents(TEXTS), embedder.encode_text(TEXTS)
    )


def test_an_empty_document_prefix_is_a_prefix(encoder, preprocessor):
    embedder = T5TextEmbedder(encoder, preprocessor, document_prefix="")

    assert (
        np.abs(
            embedder.encode_documents(["a cat"])
            - embedder.encode_text(["a cat"])
        ).max()
        > 1e-3
    )


def test_one_text_is_a_batch_of_one(encoder, preprocessor):
    embedder = T5TextEmbedder(encoder, preprocessor)

    np.testing.assert_allclose(
        embedder.encode_text("a cat"),
        embedder.encode_text(TEXTS)[:1],
        atol=1e-6,
    )


def test_no_texts_give_no_rows(encoder, preprocessor):
    embedder = T5TextEmbedder(encoder, preprocessor, projection_dim=5)

    assert embedder.encode_text([]).shape == (0, 5)


def test_invalid_utf8_is_read_as_in_training(encoder, preprocessor):
    embedder = T5TextEmbedder(encoder, preprocessor)

    np.testing.assert_allclose(
        embedder.encode_text([b"a \xff cat"]),
        embedder.encode_text(["a \ufffd cat"]),
        atol=1e-6,
    )


def test_batches_do_not_change_embeddings(encoder, preprocessor):
    embedder = T5TextEmbedder(encoder, preprocessor)

    np.testing.assert_allclose(
        embedder.encode_text(TEXTS, batch_size=1),
        embedder.encode_text(TEXTS),
        atol=1e-6,
    )


def test_similarity_is_the_inner_product(encoder):
    queries = np.array([[1, 2], [3, 4]], np.float32)
    documents = np.array([[5, 6], [7, 8], [9, 10]], np.float32)

    scores = T5TextEmbedder(encoder).similarity(queries, documents)

    np.testing.assert_array_equal(scores, [[17, 23, 29], [39, 53, 67]])


def test_its_config_makes_an_equal_embedder(encoder, preprocessor):
    options = {
        "projection_dim": 5,
        "projection_bias": True,
        "projection_activation": "tanh",
        "normalize": False,
        "document_length": 7,
        "document_prefix": "read: ",
    }
    embedder = T5TextEmbedder(encoder, preprocessor, **options)

    copy = T5TextEmbedder.from_config(embedder.get_config())
    copy.set_weights(embedder.get_weights())

    assert {name: getattr(copy, name) for name in options} == options
    features = preprocessor(TEXTS)
    np.testing.assert_array_equal(copy(features), embedder(features))


def test_it_can_be_trained(make_tiny_encoder, preprocessor):
    encoder = make_tiny_encoder(1, num_layers=1, dropout=0.0)
    embedder = T5TextEmbedder(encoder, preprocessor, projection_dim=5)
    embedder.compile(optimizer="sgd", loss="mse")
    dataset = tf.data.Dataset.from_tensors((TEXTS, np.eye(3, 5)))
    before = embedder.projection.kernel.numpy()

    history = embedder.fit(dataset, epochs=2, verbose=0, shuffle=False)

    assert history.history["loss"][1] < history.history["loss"][0]
    assert np.abs(embedder.projection.kernel.numpy() - before).max() > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pooling_mode": "cls"}, "pooling_mode='cls'"),
        ({"projection_dim": -1}, "projection_dim=-1"),
    ],
)
def test_an_option_out_of_range_is_refused(encoder, options, message):
    with pytest.raises(InvalidInputError, match=message):
        T5TextEmbedder(encoder, **options)


@pytest.mark.parametrize("method", ["encode_text", "encode_documents"])
def test_texts_need_a_preprocessor(encoder, method):
    embedder = T5TextEmbedder(encoder)

    with pytest.raises(InvalidInputError, match="preprocessor=None"):
        getattr(embedder, method)(["a cat"])


def test_it_is_registered_under_its_own_name():
    name = keras.saving.get_registered_name(T5TextEmbedder)

    assert name == "tf_samtone>T5TextEmbedder"
