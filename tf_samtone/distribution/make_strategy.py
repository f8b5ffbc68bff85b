"""Strategies by name."""

import json
import os

import tensorflow as tf

from tf_samtone.errors import InvalidInputError

__all__ = ["STRATEGY_NAMES", "make_strategy"]

STRATEGY_NAMES = ("none", "mirrored", "tpu", "multi_worker")


def make_strategy(
    name: str = "none", *, devices: int = 0, tpu: str = "local"
) -> tf.distribute.Strategy:
    """Makes a strategy; create model and optimizer in its scope.

    Args:
        name: str. `"none"`: one device, TensorFlow's default. `"mirrored"`:
            the GPUs of this machine. `"tpu"`: the cores of a TPU.
            `"multi_worker"`: the GPUs or the CPU of every process of the
            cluster in the environment variable `TF_CONFIG`. Defaults to
            `"none"`.
        devices: int. For `"mirrored"`: `0` for all GPUs, or how many. Without
            a GPU that many logical CPUs, which share the machine: good for
            tests only. Defaults to `0`.
        tpu: str. For `"tpu"`: name or address of the TPU; `"local"` for that
            of this machine. Defaults to `"local"`.

    Raises:
        InvalidInputError: if the name is unknown, an argument does not belong
            to it, or the devices that it asks for do not exist.
    """
    if name not in STRATEGY_NAMES:
        raise InvalidInputError(
            f"Expected `name` to be one of {', '.join(STRATEGY_NAMES)}. "
            f"Received: name={name!r}. Choose one of them."
        )
    if devices < 0 or (devices and name != "mirrored"):
        raise InvalidInputError(
            "Expected `devices` >= 0, and 0 unless the strategy is mirrored. "
            f"Received: name={name!r}, devices={devices}. Leave devices out "
            "to use all."
        )
    if name == "mirrored":
        return tf.distribute.MirroredStrategy(_mirrored_devices(devices))
    if name == "tpu":
        return _tpu_strategy(tpu)
    if name == "multi_worker":
        _check_cluster()
        return tf.distribute.MultiWorkerMirroredStrategy()
    return tf.distribute.get_strategy()


def _mirrored_devices(count: int) -> list[str]:
    gpus = len(tf.config.list_logical_devices("GPU")) if _has_gpu() else 0
    if not gpus and not count:
        raise InvalidInputError(
            "Expected at least one GPU for strategy 'mirrored'. Received: a "
            f"machine with {_existing_devices()}. Use strategy 'none', or pass "
            "devices=n to try it on n logical CPUs, which is no faster."
        )
    if not gpus:
        return _logical_cpus(count)
    if count > gpus:
        raise InvalidInputError(
            f"Expected at most {gpus} devices, the GPUs that TensorFlow sees. "
            f"Received: devices={count}. Lower it, or look at "
            "CUDA_VISIBLE_DEVICES."
        )
    return [f"GPU:{i}" for i in range(count or gpus)]


def _logical_cpus(count: int) -> list[str]:
    """Cuts the CPU into logical devices, unless it has enough of them."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    try:
        before = tf.config.get_logical_device_configuration(cpu) or []
        if len(before) < count:
            tf.config.set_logical_device_configuration(
                cpu, [tf.config.LogicalDeviceConfiguration()] * count
            )
    except RuntimeError as error:
        existing = len(tf.config.list_logical_devices("CPU"))
        if existing < count:
            raise InvalidInputError(
                f"Expected to divide the CPU into {count} logical devices. "
                f"Received: a TensorFlow that runs already, with {existing}. "
                "Call make_strategy before anything is computed in this "
                "process."
            ) from error
    return [f"CPU:{i}" for i in range(count)]


def _tpu_strategy(tpu: str) -> tf.distribute.Strategy:
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu)
        if tpu != "local":
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
        strategy: tf.distribute.Strategy = tf.distribute.TPUStrategy(resolver)
    except (ValueError, RuntimeError, OSError, tf.errors.OpError) as error:
        raise InvalidInputError(
            f"Expected a TPU named {tpu!r} (resolve, connect, initialise). "
            f"Received: {type(error).__name__}: {_first_line(error)}; this "
            f"machine has {_existing_devices()}. Check the name, that this is "
            "a TPU VM with the package tensorflow-tpu, and that no other "
            "process holds the TPU."
        ) from error
    return strategy


def _check_cluster() -> None:
    """Refuses a TF_CONFIG of which TensorFlow would make a single worker."""
    text = os.environ.get("TF_CONFIG", "")
    try:
        config = json.loads(text)
        workers = config["cluster"]["worker"]
        index = config["task"]["index"]
        is_worker = config["task"]["type"] == "worker"
    except (ValueError, KeyError, TypeError):
        workers, index, is_worker = [], 0, False
    if not is_worker or not 0 <= index < len(workers):
        raise InvalidInputError(
            "Expected the environment variable TF_CONFIG to name the workers "
            f"and this process. Received: TF_CONFIG={text!r}. Set it on every "
            'machine, e.g. {"cluster": {"worker": ["10.0.0.1:2222", '
            '"10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}.'
        )


def _has_gpu() -> bool:
    return bool(tf.config.list_physical_devices("GPU"))


def _existing_devices() -> str:
    """Returns for example 1 CPU, without starting any device."""
    kinds = [device.device_type for device in tf.config.list_physical_devices()]
    counts = [f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds))]
    return ", ".join(counts) or "no devices"


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or ["no message"])[0]
