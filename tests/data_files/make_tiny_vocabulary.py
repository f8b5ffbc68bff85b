"""Makes `tiny.spm`, the SentencePiece vocabulary of the tests.

    python tests/data_files/make_tiny_vocabulary.py

A unigram model of at most 320 pieces (pad 0, eos 1, unk 2) trained on the
sentences that this script composes. Running it again with the same version
of SentencePiece gives the same bytes. Tests read `tiny.spm` beside it.
"""

import pathlib
import string

from tf_samtone.text import train_tokenizer

TINY_VOCABULARY = pathlib.Path(__file__).with_name("tiny.spm")

_SUBJECTS = (
    "a cat",
    "the small dog",
    "an old teacher",
    "every student",
    "the café",
    "a blue bird",
    "my neighbour",
    "the engine",
    "a patient",
    "the doctor",
    "this function",
    "some mountain village",
    "one green parrot",
    "that clever programmer",
    "our winter garden",
)
_ACTIONS = (
    "reads a long book",
    "removes the directory tree",
    "returns the largest value",
    "sleeps in the warm house",
    "asks a short question",
    "finds the right answer",
    "treats the symptoms of a disease",
    "opens a file for writing",
    "computes the mean of an array",
    "walks along the river",
    "splits a string at each comma",
    "explains why plants need light",
    "measures pressure and temperature",
    "sorts numbers in descending order",
    "sings about distant islands",
    "copies every element twice",
    "raises an error when nothing matches",
    "describes how bridges carry weight",
    "drinks cold water from the well",
    "predicts tomorrow's weather",
)
_ENDINGS = (
    "today",
    "at night",
    "without a reason",
    "before the storm",
    "since last summer",
    "with great care",
)


def sentences() -> list[str]:
    """Composes the training text."""
    composed = [
        f"{subject} {action} {ending}."
        for subject in _SUBJECTS
        for action in _ACTIONS
        for ending in _ENDINGS
    ]
    # Every printable ASCII character gets a piece of its own.
    characters = " ".join(string.ascii_letters + string.digits)
    return [*composed, *[f"{characters} {string.punctuation} é"] * 4]


if __name__ == "__main__":
    train_tokenizer(
        sentences(),
        TINY_VOCABULARY,
        vocabulary_size=320,
        character_coverage=1.0,
    )
