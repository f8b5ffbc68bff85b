"""The files of a saved dual encoder, known without TensorFlow."""

__all__ = ["CONFIG_FILE", "FORMAT_VERSION", "KIND", "WEIGHTS_FILE"]

KIND = "dual_encoder"
# 2: optional keys for prefixes, for no normalisation, and for projections with
# a bias or an activation.
FORMAT_VERSION = 2
CONFIG_FILE = "config.json"
WEIGHTS_FILE = "model.weights.h5"
