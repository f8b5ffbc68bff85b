"""Figures of embedding spaces."""

from tf_samtone.analysis.mean_pairwise_cosine import mean_pairwise_cosine

__all__ = ["mean_pairwise_cosine"]
