"""Makes strategies in a process of its own and writes what came of it.

    python make_each_strategy.py OUTPUT.json

The output holds a sum over two logical CPUs, and the errors.
"""

import json
import pathlib
import sys

import tensorflow as tf

from tf_samtone.distribution import make_strategy
from tf_samtone.errors import InvalidInputError


def error_of(name: str, **options) -> str:
    """Return the message of the error, which must come."""
    try:
        make_strategy(name, **options)
    except InvalidInputError as error:
        return str(error)
    raise ValueError(f"{name} with {options} was made")


def main() -> None:
    """Make two logical CPUs first, as it comes before any computation."""
    strategy = make_strategy("mirrored", devices=2)

    def replica_number() -> tf.Tensor:
        context = tf.distribute.get_replica_context()
        return tf.convert_to_tensor(context.replica_id_in_sync_group) + 1

    numbers = tf.function(lambda: strategy.run(replica_number))()
    figures = {
        "sum": int(strategy.reduce("SUM", numbers, axis=None)),
        "again": make_strategy("mirrored", devices=2).num_replicas_in_sync,
        "too many": error_of("mirrored", devices=4),
        "no GPU": error_of("mirrored"),
        "no TPU": error_of("tpu"),
    }
    pathlib.Path(sys.argv[1]).write_text(json.dumps(figures))


if __name__ == "__main__":
    main()
