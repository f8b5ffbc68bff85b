"""Times the matrix products of a training step, alone.

The shapes are read off the step's own graph: every product of its forward
and backward pass, with the operands' dtype and transposition as they are in
the step, and nothing between them.
"""

import collections
import statistics
import time

import tensorflow as tf

_PRODUCTS = {
    "MatMul": ("transpose_a", "transpose_b"),
    "BatchMatMulV2": ("adj_x", "adj_y"),
}


class MatmulTimes:
    """The products that `model.train_step` computes for one batch.

    Args:
        model: compiled `DualEncoder`.
        batch: feature dict.
    """

    def __init__(self, model, batch: dict) -> None:
        counts = _products(model, batch)
        self.count = sum(counts.values())
        self.flops = sum(
            count * _flops(product) for product, count in counts.items()
        )
        self._runs = [
            (count, _function(product)) for product, count in counts.items()
        ]
        for _, run in self._runs:
            run()

    def seconds(self, repeats: int = 3) -> tuple[float, float]:
        """Returns wall and CPU seconds of all products of one step.

        Each distinct product is timed `repeats` times, and the median counts
        as often as the step has it.
        """
        wall_total = cpu_total = 0.0
        for count, run in self._runs:
            walls, cpus = [], []
            for _ in range(repeats):
                wall, cpu = time.perf_counter(), time.process_time()
                run()
                walls.append(time.perf_counter() - wall)
                cpus.append(time.process_time() - cpu)
            wall_total += count * statistics.median(walls)
            cpu_total += count * statistics.median(cpus)
        return wall_total, cpu_total


def _products(model, batch: dict) -> collections.Counter:
    """Counts the step's products by shapes, dtype and transposition."""

    @tf.function(autograph=False)
    def step(features):
        return model.train_step(features)

    # Traced on the batch itself, so that all shapes are known.
    graph = step.get_concrete_function(batch).graph
    found: collections.Counter = collections.Counter()
    for operation in _operations(graph):
        if operation.type not in _PRODUCTS:
            continue
        flags = tuple(operation.get_attr(n) for n in _PRODUCTS[operation.type])
        shapes = tuple(tuple(x.shape) for x in operation.inputs)
        found[shapes, flags, operation.inputs[0].dtype.name] += 1
    return found


def _operations(graph):
    """Yields the operations of a graph and of the functions that it calls.

    A function that is called twice is counted twice.
    """
    for operation in graph.get_operations():
        yield operation
        for name in ("f", "then_branch", "body"):
            try:
                function = operation.get_attr(name)
            except ValueError:
                continue
            inner = graph._get_function(function.name)
            yield from _operations(inner.graph)


def _flops(product: tuple) -> int:
    (left, right), (transposed, _), _ = product
    rows, inner = left[-2:][::-1] if transposed else left[-2:]
    columns = right[-2] if product[1][1] else right[-1]
    flops = 2 * rows * inner * columns
    for size in left[:-2]:
        flops *= size
    return flops


def _function(product: tuple):
    """Returns a function without arguments that computes one product."""
    shapes, (left_flag, right_flag), dtype = product
    left, right = (tf.cast(tf.random.normal(shape), dtype) for shape in shapes)

    @tf.function(autograph=False)
    def run(left, right):
        result = tf.matmul(
            left, right, transpose_a=left_flag, transpose_b=right_flag
        )
        # A scalar, so that nothing but the product can take time.
        return result[..., 0, 0]

    # Traced here: called as it is, TensorFlow warns of so many functions.
    concrete = run.get_concrete_function(left, right)
    return lambda: concrete(left, right)
