"""Search over document embeddings and texts, and fusion of runs."""

from tf_samtone.retrieval.bm25_index import BM25Index
from tf_samtone.retrieval.exact_index import ExactIndex
from tf_samtone.retrieval.fusion import (
    reciprocal_rank_fusion,
    weighted_fusion,
)
from tf_samtone.retrieval.load_index import load_index
from tf_samtone.retrieval.scann_index import ScannIndex
from tf_samtone.retrieval.to_run import to_run

__all__ = [
    "BM25Index",
    "ExactIndex",
    "ScannIndex",
    "load_index",
    "reciprocal_rank_fusion",
    "to_run",
    "weighted_fusion",
]
