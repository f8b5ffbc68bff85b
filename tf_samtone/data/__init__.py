"""Collections, pairs and the training pipeline."""

from tf_samtone.data.batch_rows import batch_rows
from tf_samtone.data.collection import Collection
from tf_samtone.data.mixed_dataset import mixed_dataset, source_of_step
from tf_samtone.data.pair import Pair
from tf_samtone.data.python_docs import read_python_docs
from tf_samtone.data.python_docs_weak import weak_pairs
from tf_samtone.data.python_sources import read_python_modules
from tf_samtone.data.python_texts import split_identifiers
from tf_samtone.data.read_beir_folder import read_beir_folder
from tf_samtone.data.training_dataset import training_dataset

__all__ = [
    "Collection",
    "Pair",
    "batch_rows",
    "mixed_dataset",
    "read_beir_folder",
    "read_python_docs",
    "read_python_modules",
    "source_of_step",
    "split_identifiers",
    "training_dataset",
    "weak_pairs",
]
