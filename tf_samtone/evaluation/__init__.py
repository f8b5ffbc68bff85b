"""Metrics of runs by trec_eval's rules, and TREC files."""

from tf_samtone.evaluation.evaluate import evaluate
from tf_samtone.evaluation.evaluate_per_query import evaluate_per_query
from tf_samtone.evaluation.in_batch_metrics import in_batch_metrics
from tf_samtone.evaluation.ranking_metrics import load_ranking_metrics
from tf_samtone.evaluation.trec_files import (
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from tf_samtone.evaluation.tune_weight import tune_weight

__all__ = [
    "evaluate",
    "evaluate_per_query",
    "in_batch_metrics",
    "load_ranking_metrics",
    "read_qrels",
    "read_run",
    "tune_weight",
    "write_qrels",
    "write_run",
]
