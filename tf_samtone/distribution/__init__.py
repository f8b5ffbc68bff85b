"""Training on several devices."""

from tf_samtone.distribution.gather_rows import gather_rows

__all__ = ["gather_rows"]
