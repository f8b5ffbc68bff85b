"""Two passes over micro-batches against one pass over the batch."""

import numpy as np
import pytest
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.losses import (
    GTELoss,
    InBatchSoftmaxLoss,
    LearnedTemperature,
    PairLoss,
    SamToNeLoss,
    TripletLoss,
)
from tf_samtone.models import ARCHITECTURES
from tf_samtone.models.batch_gradients import BatchGradients
from tf_samtone.models.dropout_seed import folded_seed
from tf_samtone.models.embedded_batch import EmbeddedBatch
from tf_samtone.models.pair_encoding import encode_pairs
from tf_samtone.text import pack_rows

ROWS, K = 8, 2
SEED = folded_seed(7, 3)


def ragged(count, longest, seed):
    generator = np.random.default_rng(seed)
    lengths = generator.integers(1, longest + 1, count)
    return tf.RaggedTensor.from_row_lengths(
        generator.integers(3, 300, lengths.sum()).astype(np.int32), lengths
    )


def padded(tokens, longest):
    token_ids = tokens.to_tensor(shape=[None, longest])
    mask = tf.sequence_mask(tokens.row_lengths(), longest, tf.int32)
    return {"token_ids": token_ids, "padding_mask": mask}


QUERIES, DOCUMENTS = ragged(ROWS, 6, 0), ragged(ROWS, 9, 1)
NEGATIVES = ragged(ROWS * K, 9, 2)


def features(*, hard_negatives=False, groups=None):
    generator = np.random.default_rng(5)
    ids = {
        "query_ids": tf.constant(generator.integers(0, 6, ROWS)),
        "document_ids": tf.constant(generator.integers(0, 6, ROWS)),
        "is_valid": tf.constant([1, 1, 1, 1, 1, 1, 0, 1]),
    }
    if groups is not None:
        return {
            "queries": pack_rows(QUERIES, 12, groups=groups),
            "documents": pack_rows(DOCUMENTS, 9, groups=groups),
            **ids,
        }
    batch = {
        "queries": padded(QUERIES, 6),
        "documents": padded(DOCUMENTS, 9),
        **ids,
    }
    if hard_negatives:
        negatives = padded(NEGATIVES, 9)
        batch["hard_negatives"] = {
            name: tf.reshape(value, [ROWS, K, 9])
            for name, value in negatives.items()
        }
        mask = generator.random([ROWS, K]) > 0.3
        batch["hard_negative_mask"] = tf.constant(mask.astype(np.int32))
    return batch


def gradients(model, batch, micro_batch_size=None, seed=SEED):
    variables = model.trainable_variables

    @tf.function(autograph=False)
    def step():
        return dense(
            BatchGradients.computed(
                model,
                batch,
                variables,
                seed=seed,
                micro_batch_size=micro_batch_size,
            ).gradients,
            variables,
        )

    return [g.numpy() for g in step()]


def dense(parts, variables):
    return [
        tf.math.unsorted_segment_sum(p.values, p.indices, v.shape[0])
        if isinstance(p, tf.IndexedSlices)
        else p
        for p, v in zip(parts, variables, strict=True)
    ]


def assert_equal_gradients(actual, expected):
    scale = max(np.abs(x).max() for x in expected)
    assert scale > 1e-3
    for a, e in zip(actual, expected, strict=True):
        np.testing.assert_allclose(a, e, rtol=0, atol=2e-6 * scale)


def compiled(model, loss=None):
    model.compile("sgd", loss or SamToNeLoss(0.1))
    return model


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_gradients_do_not_depend_on_the_micro_batch(
    make_tiny_dual_encoder, make_tiny_encoder, size
):
    model = compiled(
        make_tiny_dual_encoder(encoder=make_tiny_encoder(dropout=0.0))
    )
    batch = features(hard_negatives=True)
    assert_equal_gradients(
        gradients(model, batch, size), gradients(model, batch)
    )


LOSSES = {
    "in-batch": InBatchSoftmaxLoss(0.1),
    "learned temperature": SamToNeLoss(LearnedTemperature(0.1), "both"),
    "pair": PairLoss(0.1),
    "gte": GTELoss(0.1),
    "tiles": SamToNeLoss(0.1, tile_size=3),
    "triplet": TripletLoss(),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_every_loss_is_exact(make_tiny_dual_encoder, make_tiny_encoder, loss):
    model = compiled(
        make_tiny_dual_encoder(encoder=make_tiny_encoder(dropout=0.0)), loss
    )
    batch = features()
    assert_equal_gradients(gradients(model, batch, 2), gradients(model, batch))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_is_exact(
    make_tiny_dual_encoder, make_tiny_encoder, architecture
):
    encoder = make_tiny_encoder(dropout=0.0)
    model = compiled(make_tiny_dual_encoder(architecture, encoder=encoder))
    batch = features()
    assert_equal_gradients(gradients(model, batch, 4), gradients(model, batch))


def test_packed_rows_are_exact(make_tiny_dual_encoder, make_tiny_encoder):
    model = compiled(
        make_tiny_dual_encoder(encoder=make_tiny_encoder(dropout=0.0))
    )
    expected = gradients(model, features())
    assert_equal_gradients(gradients(model, features(groups=1)), expected)
    assert_equal_gradients(gradients(model, features(groups=4), 2), expected)


def test_dropout_is_the_same_in_both_passes(make_tiny_dual_encoder):
    model = compiled(make_tiny_dual_encoder(encoder=None))
    batch = features(hard_negatives=True)
    variables = model.trainable_variables
    # All micro-batches with their seeds under one tape: nothing is replayed.
    with tf.GradientTape() as tape:
        parts = [
            encode_pairs(
                model,
                tf.nest.map_structure(lambda x, i=i: x[i : i + 2], batch),
                training=True,
                seed=folded_seed(SEED, i // 2),
            )
            for i in range(0, ROWS, 2)
        ]
        embeddings = {
            name: tf.concat([part[name] for part in parts], 0)
            for name in parts[0]
        }
        whole = EmbeddedBatch.gathered(embeddings, batch)
        loss = whole.total_loss(model.contrastive_loss) / whole.num_columns
    expected = tape.gradient(loss, [v.value for v in variables])
    expected = [g.numpy() for g in dense(expected, variables)]
    actual = gradients(model, batch, 2)
    assert_equal_gradients(actual, expected)
    other = gradients(model, batch, 2, seed=folded_seed(8, 3))
    differences = [
        np.abs(a - b).max() for a, b in zip(actual, other, strict=True)
    ]
    assert max(differences) > 1e-3


def test_a_micro_batch_that_does_not_divide_the_batch_is_refused(
    make_tiny_dual_encoder,
):
    model = compiled(make_tiny_dual_encoder())
    with pytest.raises(InvalidInputError, match="=3, 8 pairs per replica"):
        gradients(model, features(), 3)


def test_a_batch_of_unknown_size_that_cannot_be_divided_fails(
    make_tiny_dual_encoder,
):
    model = compiled(make_tiny_dual_encoder())
    variables = model.trainable_variables

    @tf.function(autograph=False)
    def step(batch):
        return BatchGradients.computed(
            model, batch, variables, seed=SEED, micro_batch_size=3
        ).total

    batch = features()
    spec = tf.nest.map_structure(
        lambda x: tf.TensorSpec([None, *x.shape[1:]], x.dtype), batch
    )
    concrete = step.get_concrete_function(spec)
    six = tf.nest.map_structure(lambda x: x[:6], batch)
    assert np.isfinite(concrete(*tf.nest.flatten(six)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="micro-batches"):
        concrete(*tf.nest.flatten(batch))


def test_fit_with_a_gradient_cache_gives_the_weights_of_fit_without(
    make_tiny_dual_encoder, make_tiny_encoder
):
    weights = []
    for size in (None, 2):
        model = make_tiny_dual_encoder(encoder=make_tiny_encoder(dropout=0.0))
        model.compile("sgd", SamToNeLoss(0.1), gradient_cache_batch_size=size)
        dataset = tf.data.Dataset.from_tensors(features()).repeat(3)
        model.fit(dataset, verbose=0)
        weights.append([v.numpy() for v in model.trainable_variables])
    for plain, cached in zip(*weights, strict=True):
        np.testing.assert_allclose(cached, plain, rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [0, -1, 2.0], ids=repr)
def test_a_size_that_is_no_count_is_refused(make_tiny_dual_encoder, size):
    with pytest.raises(InvalidInputError, match="gradient_cache_batch_size"):
        make_tiny_dual_encoder().compile(
            "sgd", SamToNeLoss(0.1), gradient_cache_batch_size=size
        )
