"""TextPreprocessor against the sentencepiece package."""

import pathlib

import keras_hub
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from tf_samtone.errors import InvalidInputError
from tf_samtone.text import TextPreprocessor, load_tokenizer

SHARED_VOCABULARY = (
    pathlib.Path(__file__).parents[2].parent
    / "shared/data/t5_small_encoder/spiece.model"
)

VALID_TEXTS = {
    "plain": "the cat asks a short question",
    "empty": "",
    "spaces": "   ",
    "nul_inside": "a cat\0 reads a book",
    "literal_end": "a cat </s> sleeps",
    "literal_pad": "<pad> a cat <pad>",
    "byte_order_mark": "\ufeffthe cat",
    "composed": "the caf\u00e9",
    "decomposed": "the cafe\u0301",
    "right_to_left_mark": "the \u200fcat",
    "emoji": "the \U0001f600 cat \U0001f469\u200d\U0001f52c",
    "line_ends": "the cat\r\nreads\ra\nbook\t today",
    "unknown_script": "\u4e2d\u6587",
    "noncharacter": "a\uffff cat",
}
INVALID_TEXTS = {
    "stray_bytes": b"\xff\xfe the cat",
    "cut_character": "the caf\u00e9".encode()[:-1],
    "surrogate_bytes": b"a \xed\xa0\x80 cat",
    "overlong_nul": b"a\xc0\x80cat",
}


def expected_row(reference, text, length):
    """Packs what the sentencepiece package returns, in plain Python."""
    tokens = reference.encode(text)[: length - 1] + [1]
    return tokens + [0] * (length - len(tokens))


def in_graph(preprocessor, texts):
    dataset = tf.data.Dataset.from_tensor_slices(texts)
    return next(iter(dataset.batch(len(texts)).map(preprocessor)))


@pytest.mark.parametrize("text", VALID_TEXTS.values(), ids=VALID_TEXTS)
def test_valid_text_equals_the_sentencepiece_package(
    tokenizer, reference, text
):
    features = TextPreprocessor(tokenizer, 40)([text])

    row = expected_row(reference, text, 40)
    assert features["token_ids"].numpy().tolist() == [row]


@pytest.mark.parametrize("text", INVALID_TEXTS.values(), ids=INVALID_TEXTS)
def test_invalid_utf8_equals_the_text_with_replacement_characters(
    tokenizer, reference, text
):
    features = TextPreprocessor(tokenizer, 40)([text])

    replaced = text.decode("utf-8", errors="replace")
    row = expected_row(reference, replaced, 40)
    assert features["token_ids"].numpy().tolist() == [row]


@pytest.mark.parametrize(
    "text",
    [*VALID_TEXTS.values(), *INVALID_TEXTS.values()],
    ids=[*VALID_TEXTS, *INVALID_TEXTS],
)
def test_eager_and_tf_data_agree(tokenizer, text):
    preprocessor = TextPreprocessor(tokenizer, 40)

    eager = preprocessor([text])
    graph = in_graph(preprocessor, [text])

    np.testing.assert_array_equal(eager["token_ids"], graph["token_ids"])
    np.testing.assert_array_equal(eager["padding_mask"], graph["padding_mask"])


def test_lone_surrogate_in_a_python_string_is_replaced(tokenizer, reference):
    features = TextPreprocessor(tokenizer, 16)(["a \ud800 cat"])

    row = expected_row(reference, "a \ufffd cat", 16)
    assert features["token_ids"].numpy().tolist() == [row]


@pytest.mark.parametrize("text", ["</s>", "<pad>", "</s> a <pad> </s>"])
def test_user_text_never_makes_a_special_token(tokenizer, text):
    tokens = TextPreprocessor(tokenizer, 40).tokenize([text]).to_list()[0]

    assert tokens[-1] == 1
    assert not {0, 1} & set(tokens[:-1])


def test_a_row_does_not_start_with_the_end_token(tokenizer):
    features = TextPreprocessor(tokenizer, 12)(["a cat"])

    assert features["token_ids"].numpy()[0, 0] != tokenizer.end_token_id


def test_empty_text_is_a_lone_end_token(tokenizer):
    features = TextPreprocessor(tokenizer, 4)([""])

    assert features["token_ids"].numpy().tolist() == [[1, 0, 0, 0]]
    assert features["padding_mask"].numpy().tolist() == [[1, 0, 0, 0]]


def test_truncation_keeps_the_end_token(tokenizer, reference):
    text = "the cat reads a long book at night"

    features = TextPreprocessor(tokenizer, 5)([text])

    row = [*reference.encode(text)[:4], 1]
    assert features["token_ids"].numpy().tolist() == [row]
    assert features["padding_mask"].numpy().tolist() == [[1] * 5]


def test_length_one_leaves_only_the_end_token(tokenizer):
    features = TextPreprocessor(tokenizer, 1)(["the cat"])

    assert features["token_ids"].numpy().tolist() == [[1]]


def test_a_text_of_800_000_tokens_is_cut(tokenizer, reference):
    features = TextPreprocessor(tokenizer, 64)(["a cat " * 400_000])

    row = expected_row(reference, "a cat " * 50, 64)
    assert features["token_ids"].numpy().tolist() == [row]


def test_bytes_after_the_maximum_are_not_read(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, 4)
    blank = b" " * preprocessor.maximum_bytes

    rows = preprocessor([blank[:-1] + b"a", blank + b"a"])["token_ids"].numpy()

    assert (
        rows[0].tolist() == preprocessor(["a"])["token_ids"][0].numpy().tolist()
    )
    assert rows[1].tolist() == [1, 0, 0, 0]


def test_changes_are_counted(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, 4)
    long_text = "the cat reads a long book"

    counts = preprocessor.count_changes(["a", long_text, b"\xff", ""])

    assert counts == {"truncated": 1, "invalid_utf8": 1}


def test_features_are_int32_of_the_fixed_length(tokenizer):
    features = TextPreprocessor(tokenizer, 7)(["a", "the cat", ""])

    assert {name: (v.dtype, v.shape) for name, v in features.items()} == {
        "token_ids": (tf.int32, (3, 7)),
        "padding_mask": (tf.int32, (3, 7)),
    }


def test_no_texts_give_no_rows(tokenizer):
    features = TextPreprocessor(tokenizer, 7)([])

    assert features["token_ids"].shape == (0, 7)


def test_a_known_batch_size_stays_static(tokenizer):
    dataset = tf.data.Dataset.from_tensor_slices(["a", "b"])
    dataset = dataset.batch(2, drop_remainder=True)

    spec = dataset.map(TextPreprocessor(tokenizer, 7)).element_spec

    assert spec["token_ids"].shape == (2, 7)
    assert spec["padding_mask"].shape == (2, 7)


def test_ragged_tokens_are_the_unpadded_rows(tokenizer, reference):
    texts = ["a cat", "", "the small dog sleeps in the warm house"]

    tokens = TextPreprocessor(tokenizer, 6).tokenize(texts)

    assert tokens.dtype == tf.int32
    assert tokens.to_list() == [
        [*reference.encode(text)[:5], 1] for text in texts
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a", 7], r"texts\[1\]=7 \(int\)"),
        (["a", "b", None], r"texts\[2\]=None \(NoneType\)"),
        ([["a"]], r"texts\[0\]=\['a'\] \(list\)"),
        ("a", r"texts='a' \(str\). Wrap a single text in a list"),
        (None, r"texts=None"),
        (5, r"texts=5 \(int\)"),
        (np.zeros([2]), r"texts\[0\]="),
        (tf.constant("a"), r"shape=\(\)"),
        (tf.constant([1]), r"dtype=int32"),
    ],
    ids=[
        "int_row",
        "none_row",
        "nested",
        "single_string",
        "none",
        "int",
        "float_array",
        "scalar_tensor",
        "int_tensor",
    ],
)
def test_anything_but_texts_is_refused(tokenizer, texts, message):
    with pytest.raises(InvalidInputError, match=message):
        TextPreprocessor(tokenizer, 8)(texts)


@pytest.mark.parametrize("length", [0, -3, 2.5, True, None, "8"])
def test_a_length_without_room_for_the_end_token_is_refused(tokenizer, length):
    with pytest.raises(InvalidInputError, match="sequence_length="):
        TextPreprocessor(tokenizer, length)


@pytest.mark.parametrize(
    "options",
    [{"add_eos": True}, {"sequence_length": 9}, {"dtype": "string"}],
    ids=["adds_end", "pads", "strings"],
)
def test_a_tokenizer_with_its_own_packing_is_refused(tokenizer, options):
    other = keras_hub.models.T5Tokenizer(proto=tokenizer.proto, **options)

    with pytest.raises(InvalidInputError, match="default options"):
        TextPreprocessor(other, 8)


def test_something_else_than_a_tokenizer_is_refused():
    with pytest.raises(InvalidInputError, match="T5Tokenizer"):
        TextPreprocessor("vocabulary.spm", 8)


def test_config_round_trip(tokenizer):
    original = TextPreprocessor(tokenizer, 9, "find: ", name="queries")

    copy = TextPreprocessor.from_config(original.get_config(), tokenizer)

    assert copy.get_config() == {
        "sequence_length": 9,
        "prefix": "find: ",
        "name": "queries",
    }
    np.testing.assert_array_equal(
        copy(["a cat"])["token_ids"], original(["a cat"])["token_ids"]
    )


def test_a_prefix_is_put_before_every_text(tokenizer):
    plain = TextPreprocessor(tokenizer, 12)
    prefixed = TextPreprocessor(tokenizer, 12, "find: ")

    np.testing.assert_array_equal(
        prefixed(["a cat", ""])["token_ids"],
        plain(["find: a cat", "find: "])["token_ids"],
    )


def test_a_prefix_counts_towards_the_length(tokenizer):
    preprocessor = TextPreprocessor(tokenizer, 4, "find: find: find: ")

    assert preprocessor.count_changes(["a"])["truncated"] == 1
    assert preprocessor.tokenize(["a"]).row_lengths().numpy() == [4]


@pytest.mark.parametrize("prefix", [None, b"find", 3])
def test_a_prefix_that_is_no_str_is_refused(tokenizer, prefix):
    with pytest.raises(InvalidInputError, match="Expected `prefix`"):
        TextPreprocessor(tokenizer, 4, prefix)


class TextIn(tf.Module):
    """A module to export, holding nothing but a preprocessor."""

    def __init__(self, preprocessor):
        super().__init__()
        self.preprocessor = preprocessor

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts):
        return self.preprocessor(texts)


def test_a_saved_model_holds_the_vocabulary(tokenizer, tmp_path):
    module = TextIn(TextPreprocessor(tokenizer, 9))

    tf.saved_model.save(module, str(tmp_path))
    loaded = tf.saved_model.load(str(tmp_path))

    texts = tf.constant([b"the cat", b"\xff bad", b""])
    np.testing.assert_array_equal(
        loaded(texts)["token_ids"], module(texts)["token_ids"]
    )


@pytest.mark.skipif(
    not SHARED_VOCABULARY.is_file(),
    reason="../shared/data/t5_small_encoder is absent",
)
def test_the_published_t5_vocabulary_agrees_with_sentencepiece():
    texts = list(VALID_TEXTS.values())
    published = sentencepiece.SentencePieceProcessor(
        model_file=str(SHARED_VOCABULARY)
    )

    features = TextPreprocessor(load_tokenizer(SHARED_VOCABULARY), 24)(texts)

    assert features["token_ids"].numpy().tolist() == [
        expected_row(published, text, 24) for text in texts
    ]


def test_the_vocabulary_survives_a_new_random_seed(vocabulary_path):
    preprocessor = TextPreprocessor(load_tokenizer(vocabulary_path), 6)
    before = preprocessor(["the cat"])["token_ids"].numpy()

    tf.random.set_seed(1)

    after = preprocessor(["the cat"])["token_ids"].numpy()
    np.testing.assert_array_equal(after, before)


def test_two_vocabularies_in_one_process_stay_apart(vocabulary_path, tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["dog bird fish dog bird"] * 5),
        model_prefix=str(tmp_path / "other"),
        vocab_size=16,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
    )
    paths = (vocabulary_path, tmp_path / "other.model")
    preprocessors = [TextPreprocessor(load_tokenizer(p), 9) for p in paths]

    rows = [p.tokenize(["the dog"])[0].numpy().tolist() for p in preprocessors]

    assert rows == [
        sentencepiece.SentencePieceProcessor(model_file=str(path)).encode(
            "the dog", add_eos=True
        )
        for path in paths
    ]
