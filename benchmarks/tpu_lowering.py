"""Lowers a TensorFlow function for a TPU that is not there.

Not a program; `tpu_compile.py` uses it. TensorFlow writes a function that is
compiled by XLA down as HLO, and a compiler of JAX's takes it from there. The
variables that the function reads and assigns become parameters and results,
marked as sharing memory.

TensorFlow's CPU build cannot lower for a TPU. Its HLO for a CPU differs in two
places, which are changed back:

- the generator of random bits: Philox and the scrambling of its keys, where a
  TPU has a generator of its own and takes the seed as it is;
- copies of results, which StableHLO has no name for.
"""

import unittest.mock

# Of a machine that is not there; without these libtpu looks for one, and for
# other processes that use it.
ENVIRONMENT = {
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "JAX_PLATFORMS": "cpu",
    "CUDA_VISIBLE_DEVICES": "-1",
    "TF_CPP_MIN_LOG_LEVEL": "3",
}


def jitted(function, spec: dict):
    """Returns the function of a nest as one of its leaves, for XLA.

    Args:
        function: callable of a nest of tensors.
        spec: nest of `tf.TensorSpec` with static shapes.
    """
    import tensorflow as tf

    def of_leaves(*leaves):
        return function(tf.nest.pack_sequence_as(spec, leaves))

    return tf.function(of_leaves, jit_compile=True, autograph=False)


def lowered(function, spec: dict) -> bytes:
    """Returns serialised HLO of a function made by `jitted`."""
    import tensorflow as tf
    from tensorflow.python.ops import gen_stateless_random_ops_v2

    with unittest.mock.patch.object(
        gen_stateless_random_ops_v2,
        "stateless_random_get_key_counter",
        _tpu_key_counter,
    ):
        lower = function.experimental_get_compiler_ir(*tf.nest.flatten(spec))
    return lower(stage="hlo_serialized", platform_name="CPU")


def compiled_for_tpu(hlo: bytes, topology: str):
    """Compiles for one core of a TPU, e.g. of `"v5e:2x2"`.

    Returns:
        `(executable, None)`; or `(None, text)`, the compiler's words, if the
        program does not fit the core's memory.
    """
    import jax
    from jax.experimental import topologies
    from jax.interpreters import mlir

    description = topologies.get_topology_desc(topology, platform="tpu")
    core = description.devices[0]
    with mlir.make_ir_context():
        try:
            executable = core.client.compile(
                _module(hlo), **_compile_arguments(core)
            )
        except jax.errors.JaxRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return None, str(error)
    return executable, None


def run_on_cpu(hlo: bytes, arguments: list) -> list:
    """Runs on the CPU what `compiled_for_tpu` would compile.

    Args:
        hlo: as from `lowered`.
        arguments: arrays, the leaves and then the variables.

    Returns:
        list of arrays, the results and then the variables.
    """
    import jax
    from jax.interpreters import mlir

    jax.config.update("jax_enable_x64", True)
    (device,) = jax.devices("cpu")
    with mlir.make_ir_context():
        executable = device.client.compile_and_load(
            _module(hlo), **_compile_arguments(device)
        )
    return executable.execute(
        [jax.device_put(argument, device) for argument in arguments]
    )


def _tpu_key_counter(seed, name=None):
    """Returns key and counter as TensorFlow has them on a TPU."""
    import tensorflow as tf

    low, high = tf.unstack(
        tf.cast(tf.bitcast(tf.cast(seed, tf.int32), tf.uint32), tf.uint64)
    )
    shift = tf.constant(32, tf.uint64)
    key = tf.bitwise.bitwise_or(low, tf.bitwise.left_shift(high, shift))
    return key[tf.newaxis], tf.zeros([2], tf.uint64, name=name)


def _compile_arguments(device) -> dict:
    from jaxlib.xla_client import CompileOptions, DeviceList

    options = CompileOptions()
    options.num_replicas = options.num_partitions = 1
    return {
        "executable_devices": DeviceList((device,)),
        "compile_options": options,
    }


def _module(hlo: bytes):
    """Returns StableHLO for a TPU, in the MLIR context in force."""
    from jax.extend.mlir import hlo_to_stablehlo, ir

    module = ir.Module.parse(hlo_to_stablehlo(hlo))
    _adapt_to_tpu(module)
    return module


def _adapt_to_tpu(module) -> None:
    """Undoes, in place, what TensorFlow lowers otherwise for a CPU."""
    from jax.extend.mlir import ir

    found = {"mhlo.copy": [], "stablehlo.rng_bit_generator": []}

    def visit(operation):
        if operation.name in found:
            found[operation.name].append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    for copy in found["mhlo.copy"]:
        copy.results[0].replace_all_uses_with(copy.operands[0])
        copy.erase()
    for generator in found["stablehlo.rng_bit_generator"]:
        _use_default_generator(generator)


def _use_default_generator(philox) -> None:
    """Replaces Philox by the generator that TensorFlow takes on a TPU.

    The state of the one is a key and two counters, of the other a key and one.
    """
    from jax.extend.mlir import ir
    from jax.extend.mlir.dialects import stablehlo

    (operand,) = philox.operands
    new_state, bits = philox.results
    with ir.InsertionPoint(philox), philox.location:
        key, last = (
            stablehlo.slice(operand, [start], [stop], [1])
            for start, stop in ((0, 2), (2, 3))
        )
        default = stablehlo.RngBitGeneratorOp(
            key.type,
            bits.type,
            ir.Attribute.parse("#stablehlo<rng_algorithm DEFAULT>"),
            key,
        )
        # Nobody reads it after a stateless op, but it has to be there.
        padded = stablehlo.concatenate([default.results[0], last], 0)
    new_state.replace_all_uses_with(padded)
    bits.replace_all_uses_with(default.results[1])
    philox.erase()
