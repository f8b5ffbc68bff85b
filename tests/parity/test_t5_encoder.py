"""Hidden states beside transformers' T5, on random weights and on real ones."""

import os
import pathlib

import numpy as np
import pytest
from t5_folders import VOCABULARY_SIZE, T5Folder

from tf_samtone.checkpoints import load_hugging_face_t5

pytestmark = pytest.mark.parity
ROOT = pathlib.Path(__file__).parents[2]
SHARED = pathlib.Path(os.environ.get("TF_SAMTONE_SHARED", ROOT / "../shared"))
REAL = SHARED / "data" / "t5_small_encoder"
LENGTHS = (1, 2, 3, 17, 64, 129, 300, 511, 512)


@pytest.fixture
def reference_states(reference):
    """Give transformers' hidden states for padded rows, in float32."""

    def states(folder, token_ids, mask) -> np.ndarray:
        return reference.call(
            "hidden_states",
            folder=str(folder),
            token_ids=token_ids.tolist(),
            mask=mask.tolist(),
        )["states"]

    return states


def padded_rows(lengths, vocabulary_size) -> tuple[np.ndarray, np.ndarray]:
    """Return random token ids and their mask, int32 `[batch, seq]`."""
    generator = np.random.default_rng(0)
    shape = (len(lengths), max(lengths))
    mask = (np.arange(shape[1]) < np.array(lengths)[:, None]).astype(np.int32)
    return generator.integers(3, vocabulary_size, shape) * mask, mask


def assert_states_close(encoder, expected, token_ids, mask) -> None:
    inputs = {"token_ids": token_ids.astype(np.int32), "padding_mask": mask}
    actual = np.asarray(encoder(inputs, training=False))[mask > 0]
    expected = expected[mask > 0]
    atol = 1e-5 * np.abs(expected).max()
    np.testing.assert_allclose(actual, expected, rtol=0, atol=atol)


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("gated", [False, True], ids=["relu", "gated_gelu"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"dtype": "float16", "shards": 2},
        {"dtype": "bfloat16", "decoder": True},
    ],
    ids=["float32", "float16_shards", "bfloat16_decoder"],
)
def test_random_weights_agree(
    tmp_path, reference_states, layers, gated, options
):
    T5Folder(layers=layers, gated=gated, **options).write(tmp_path)
    token_ids, mask = padded_rows(LENGTHS, VOCABULARY_SIZE)
    expected = reference_states(tmp_path, token_ids, mask)

    encoder = load_hugging_face_t5(tmp_path)

    assert_states_close(encoder, expected, token_ids, mask)


@pytest.mark.parametrize("kind", ["relu", "gated-gelu", "gelu_new"])
def test_a_folder_that_transformers_wrote_agrees(
    tmp_path, reference, reference_states, kind
):
    config = {
        "vocab_size": 100,
        "d_model": 20,
        "d_kv": 6,
        "d_ff": 28,
        "num_layers": 3,
        "num_heads": 4,
        "feed_forward_proj": kind,
        "initializer_factor": 1.0,
    }
    reference.call(
        "save_t5", folder=str(tmp_path), config=config, max_shard_size="40KB"
    )
    token_ids, mask = padded_rows((1, 40, 9), 100)
    expected = reference_states(tmp_path, token_ids, mask)

    encoder = load_hugging_face_t5(tmp_path)

    assert_states_close(encoder, expected, token_ids, mask)


@pytest.mark.skipif(not REAL.is_dir(), reason="needs ../shared/data")
@pytest.mark.parametrize("lengths", [(1,), (512, 1, 200), (64, 2, 8, 511)])
def test_real_weights_agree(reference_states, lengths):
    # Not one column: Keras warns of a softmax over a single value.
    token_ids, mask = padded_rows(lengths, 32_000)
    token_ids, mask = (np.pad(a, [(0, 0), (0, 3)]) for a in (token_ids, mask))
    expected = reference_states(REAL, token_ids, mask)

    encoder = load_hugging_face_t5(REAL)

    assert_states_close(encoder, expected, token_ids, mask)
