"""Training on several devices."""

from tf_samtone.distribution.check_optimizer import check_optimizer
from tf_samtone.distribution.distribute_dataset import distribute_dataset
from tf_samtone.distribution.gather_rows import gather_rows
from tf_samtone.distribution.guarded_update import guarded_update
from tf_samtone.distribution.make_strategy import STRATEGY_NAMES, make_strategy
from tf_samtone.distribution.reducible_logs import reducible_logs

__all__ = [
    "STRATEGY_NAMES",
    "check_optimizer",
    "distribute_dataset",
    "gather_rows",
    "guarded_update",
    "make_strategy",
    "reducible_logs",
]
