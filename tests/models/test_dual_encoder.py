"""Training and encoding with a dual encoder."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.data import training_dataset
from tf_samtone.errors import InvalidInputError
from tf_samtone.evaluation import load_ranking_metrics
from tf_samtone.losses import InBatchSoftmaxLoss, SamToNeLoss
from tf_samtone.models import ARCHITECTURES

QUERIES = ["a cat", "the small dog", "an old teacher", "the engine"]
DOCUMENTS = [
    "reads a long book at night without a reason",
    "sleeps in the warm house",
    "asks a short question today since last summer",
    "",
]


def string_pairs(queries=QUERIES, documents=DOCUMENTS, batch_size=4):
    dataset = tf.data.Dataset.from_tensor_slices((queries, documents))
    return dataset.batch(batch_size)


def compiled(model, loss=None, learning_rate=0.0, **options):
    model.compile(
        keras.optimizers.Adam(learning_rate),
        loss or SamToNeLoss(temperature=0.1),
        **{"run_eagerly": True, **options},
    )
    return model


class Recorder(keras.metrics.Metric):
    """Keeps what it is given and reports a constant."""

    def __init__(self, name="recorder"):
        super().__init__(name=name)
        self.calls = []

    def update_state(self, labels, scores, sample_weight=None):
        self.calls.append((labels.numpy(), scores.numpy()))

    def result(self):
        return 0.5


# === Encoding ===


@pytest.fixture(scope="module")
def model(make_tiny_dual_encoder):
    """A model that no test of this file changes."""
    return make_tiny_dual_encoder("ade")


TEXTS = [*QUERIES, *DOCUMENTS, "a cat", "copies every element twice"]


@pytest.mark.parametrize("side", ["queries", "documents"])
def test_embeddings_do_not_depend_on_batch_mates_or_order(model, side):
    encode = getattr(model, f"encode_{side}")
    together = encode(TEXTS)
    alone = np.concatenate([encode([text]) for text in TEXTS])
    backwards = encode(TEXTS[::-1])[::-1]
    np.testing.assert_allclose(alone, together, rtol=0, atol=1e-5)
    np.testing.assert_allclose(backwards, together, rtol=0, atol=1e-5)


def test_packed_embeddings_equal_padded_ones(model):
    texts = [*TEXTS, "a cat " * 20] * 5
    np.testing.assert_allclose(
        model.encode_documents(texts, packing="rows"),
        model.encode_documents(texts),
        rtol=0,
        atol=1e-5,
    )
    assert model.encode_queries([], packing="rows").shape == (0, model.dim)


def test_an_unknown_packing_is_refused(model):
    with pytest.raises(InvalidInputError, match="packing='row'"):
        model.encode_queries(TEXTS, packing="row")


def test_embeddings_do_not_depend_on_padding(model):
    features = model.document_preprocessor(TEXTS)
    padded = {n: tf.pad(f, [[0, 0], [0, 50]]) for n, f in features.items()}
    np.testing.assert_allclose(
        model.document_tower(padded),
        model.encode_documents(TEXTS),
        rtol=0,
        atol=1e-5,
    )


@pytest.mark.parametrize("texts", [[""], ["   "], ["\x00"]], ids=repr)
def test_a_text_without_words_gives_a_unit_vector(model, texts):
    embedding = model.encode_queries(texts)
    assert np.linalg.norm(embedding) == pytest.approx(1, abs=1e-4)


def test_embeddings_are_float32_unit_vectors(model):
    embeddings = model.encode_documents(TEXTS)
    assert embeddings.dtype == np.float32
    assert embeddings.shape == (len(TEXTS), model.dim)
    lengths = np.linalg.norm(embeddings, axis=-1)
    np.testing.assert_allclose(lengths, np.ones(len(TEXTS)), atol=1e-4)


def test_each_side_cuts_at_its_own_length(model):
    long = "a cat " * 20
    preprocessors = (model.query_preprocessor, model.document_preprocessor)
    assert [p.sequence_length for p in preprocessors] == [6, 12]
    # Equal towers: the same text differs between the sides by its cut only.
    queries = model.encode_queries([long, "a cat"])
    documents = model.encode_documents([long, "a cat"])
    assert np.abs(queries[0] - documents[0]).max() > 1e-4
    np.testing.assert_allclose(queries[1], documents[1], rtol=0, atol=1e-6)


@pytest.mark.parametrize("batched", [True, False], ids=["batched", "scalars"])
def test_a_dataset_of_texts_equals_the_list(model, batched):
    dataset = tf.data.Dataset.from_tensor_slices(TEXTS)
    dataset = dataset.batch(3) if batched else dataset
    np.testing.assert_array_equal(
        model.encode_queries(dataset), model.encode_queries(TEXTS)
    )


def test_encoding_uses_the_present_weights(make_tiny_dual_encoder):
    model = make_tiny_dual_encoder()
    before = model.encode_queries(QUERIES)
    kernel = model.query_tower.projection.kernel
    kernel.assign(-kernel.numpy())
    np.testing.assert_array_equal(model.encode_queries(QUERIES), -before)


def test_similarity_is_the_matrix_of_cosines(model):
    queries = model.encode_queries(QUERIES)
    documents = model.encode_documents(DOCUMENTS[:3])
    scores = model.similarity(queries, documents)
    assert scores.shape == (4, 3)
    expected = [[float(np.dot(q, d)) for d in documents] for q in queries]
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-6)


def test_calling_gives_the_embeddings_of_both_sides(model):
    queries, documents = model(
        {
            "queries": model.query_preprocessor(QUERIES),
            "documents": model.document_preprocessor(DOCUMENTS),
        }
    )
    for actual, expected in (
        (queries, model.encode_queries(QUERIES)),
        (documents, model.encode_documents(DOCUMENTS)),
    ):
        np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5)


def test_a_tokenizer_with_more_pieces_than_rows_is_refused(
    make_tiny_dual_encoder, make_tiny_encoder
):
    encoder = make_tiny_encoder(vocabulary_size=100)
    with pytest.raises(InvalidInputError, match="vocabulary_size=100"):
        make_tiny_dual_encoder(encoder=encoder)


# === Training ===


@pytest.fixture(scope="module")
def trained(make_tiny_dual_encoder):
    """History of a run in graph mode on features, with ranking metrics."""
    model = make_tiny_dual_encoder()
    metrics = load_ranking_metrics()
    compiled(
        model,
        learning_rate=1e-2,
        run_eagerly=False,
        jit_compile=False,
        metrics=[
            metrics.PrecisionMetric(name="p_at_1", topn=1),
            metrics.MRRMetric(name="mrr"),
        ],
    )
    dataset = training_dataset(
        QUERIES,
        DOCUMENTS,
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        batch_size=4,
    )
    history = model.fit(dataset, epochs=3, steps_per_epoch=12, verbose=0)
    return model, history.history


def test_fit_on_features_lowers_the_loss(trained):
    _, history = trained
    assert history["loss"][-1] < 0.5 * history["loss"][0]


def test_ranking_metrics_of_the_batch_are_reported_by_fit(trained):
    model, history = trained
    assert set(history) == {"loss", "p_at_1", "mrr"}
    scores = model.similarity(
        model.encode_queries(QUERIES), model.encode_documents(DOCUMENTS)
    )
    assert (scores.argmax(axis=1) == np.arange(4)).all()
    assert history["p_at_1"][-1] > history["p_at_1"][0]
    assert history["mrr"][-1] > 0.9


def test_evaluate_reports_loss_and_metrics_of_the_present_weights(trained):
    model, _ = trained
    results = model.evaluate(string_pairs(), verbose=0, return_dict=True)
    expected = model.contrastive_loss(
        model.encode_queries(QUERIES), model.encode_documents(DOCUMENTS)
    )
    assert results["loss"] == pytest.approx(float(expected), rel=1e-4)
    assert results["p_at_1"] == results["mrr"] == 1.0


def test_fit_on_string_pairs_lowers_the_loss(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder(), learning_rate=1e-2)
    history = model.fit(string_pairs(), epochs=9, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]


def test_string_pairs_and_features_give_the_same_loss(make_tiny_dual_encoder):
    # Question 0 occurs twice: its ids must mask it in both forms.
    queries = [QUERIES[0], *QUERIES[1:3], QUERIES[0]]
    model = compiled(make_tiny_dual_encoder())
    features = training_dataset(
        queries,
        DOCUMENTS,
        query_preprocessor=model.query_preprocessor,
        document_preprocessor=model.document_preprocessor,
        batch_size=4,
        epochs=1,
    )
    from_features = model.evaluate(features, verbose=0)
    from_strings = model.evaluate(string_pairs(queries), verbose=0)
    assert from_strings == pytest.approx(from_features, rel=1e-5)
    compiled(model, SamToNeLoss(temperature=0.1, mask_duplicates=False))
    unmasked = model.evaluate(string_pairs(queries), verbose=0)
    assert unmasked > from_strings + 0.1


def test_the_loss_of_an_epoch_weighs_batches_by_their_rows(
    make_tiny_dual_encoder,
):
    model = compiled(make_tiny_dual_encoder())
    loss = model.evaluate(string_pairs(batch_size=3), verbose=0)
    embeddings = (
        model.encode_queries(QUERIES[:3]),
        model.encode_documents(DOCUMENTS[:3]),
    )
    # The last batch has one row, whose loss is 0.
    expected = float(model.contrastive_loss(*embeddings)) * 3 / 4
    assert loss == pytest.approx(expected, rel=1e-4)


def test_validation_data_may_be_string_pairs(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder())
    history = model.fit(
        string_pairs(),
        validation_data=string_pairs(QUERIES[:2], DOCUMENTS[:2]),
        verbose=0,
    ).history
    expected = model.evaluate(
        string_pairs(QUERIES[:2], DOCUMENTS[:2]), verbose=0
    )
    assert history["val_loss"] == pytest.approx([expected], rel=1e-5)


def test_metrics_get_identity_labels_and_the_scores_of_the_batch(
    make_tiny_dual_encoder,
):
    recorder = Recorder()
    model = compiled(make_tiny_dual_encoder(), metrics=[recorder])
    results = model.evaluate(string_pairs(), verbose=0, return_dict=True)
    assert results["recorder"] == 0.5
    ((labels, scores),) = recorder.calls
    np.testing.assert_array_equal(labels, np.eye(4))
    expected = model.similarity(
        model.encode_queries(QUERIES), model.encode_documents(DOCUMENTS)
    )
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)


def test_compiling_again_replaces_the_metrics(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder(), metrics=[Recorder("old")])
    model.evaluate(string_pairs(), verbose=0)
    compiled(model, metrics=[Recorder("new")])
    results = model.evaluate(string_pairs(), verbose=0, return_dict=True)
    assert set(results) == {"loss", "new"}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_trains_in_mixed_precision(
    make_tiny_dual_encoder, make_tiny_encoder, architecture
):
    encoder = make_tiny_encoder(num_layers=1, dtype="mixed_bfloat16")
    model = make_tiny_dual_encoder(architecture, encoder=encoder)
    compiled(model, InBatchSoftmaxLoss(temperature=0.1), learning_rate=1e-2)
    history = model.fit(string_pairs(), verbose=0).history
    assert np.isfinite(history["loss"]).all()
    assert np.isfinite(model.encode_queries(QUERIES)).all()


@pytest.mark.parametrize("loss", [None, "mse", keras.losses.MeanSquaredError()])
def test_a_loss_that_is_not_contrastive_is_refused(model, loss):
    with pytest.raises(InvalidInputError, match="ContrastiveLoss"):
        model.compile(loss=loss)


@pytest.mark.parametrize("metrics", ["accuracy", ["accuracy"]])
def test_a_metric_by_name_is_refused(model, metrics):
    with pytest.raises(InvalidInputError, match=r"keras\.metrics\.Metric"):
        model.compile(loss=SamToNeLoss(), metrics=metrics)


@pytest.mark.parametrize("verb", ["fit", "evaluate"])
@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        ([("a", "b")], "Received: list"),
        (None, "Received: NoneType"),
        (string_pairs(batch_size=1), "at least two pairs"),
        (string_pairs().unbatch(), "batch_size"),
    ],
    ids=["list", "none", "batch of one", "unbatched"],
)
def test_training_data_of_another_form_is_refused(
    make_tiny_dual_encoder, verb, dataset, message
):
    model = compiled(make_tiny_dual_encoder())
    with pytest.raises(InvalidInputError, match=message):
        getattr(model, verb)(dataset, verbose=0)


def test_validation_data_of_another_form_is_refused(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder())
    with pytest.raises(InvalidInputError, match="Received: tuple"):
        model.fit(string_pairs(), validation_data=(QUERIES, DOCUMENTS))
