"""Saving and loading of dual encoders."""

import hashlib
import json
from pathlib import Path

import keras

from tf_samtone._files import (
    MANIFEST_NAME,
    atomic_directory,
    read_manifest,
    write_manifest,
)
from tf_samtone._version import __version__
from tf_samtone.errors import MismatchError
from tf_samtone.models.preset_format import (
    CONFIG_FILE,
    FORMAT_VERSION,
    KIND,
    WEIGHTS_FILE,
)
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.tower import projection_layer
from tf_samtone.text import load_tokenizer, save_tokenizer

__all__ = ["fingerprint", "load", "save"]


def save(model, directory, *, overwrite=False):
    """Writes a dual encoder; see `DualEncoder.save_to_preset`."""
    with atomic_directory(directory, overwrite=overwrite) as temporary:
        config = json.dumps(_config(model), indent=2, sort_keys=True)
        (temporary / CONFIG_FILE).write_text(config + "\n", encoding="utf-8")
        model.save_weights(temporary / WEIGHTS_FILE)
        save_tokenizer(model.tokenizer, temporary)
        write_manifest(
            temporary,
            kind=KIND,
            format_version=FORMAT_VERSION,
            fields={
                "fingerprint": fingerprint(model),
                "tf_samtone_version": __version__,
                "keras_version": keras.__version__,
            },
        )


def load(cls, preset, options, *, pickled_files=()):
    """Loads a preset of any kind; see `DualEncoder.from_preset`."""
    if (Path(preset) / MANIFEST_NAME).is_file():
        return _load_dual_encoder(cls, Path(preset), options)
    # The layer above this one: checkpoints know models, not the reverse. Only
    # this convenience reaches up, and only when it is called.
    from tf_samtone import checkpoints

    return checkpoints.load_dual_encoder(
        preset, options, pickled_files=pickled_files, model_class=cls
    )


def fingerprint(model):
    """Hashes weights, config and vocabulary to 64 hex digits."""
    digest = hashlib.sha256()
    config = _config(model)
    # The same weights give (nearly) the same embeddings in either dtype, and
    # dropout has no part in encoding.
    config["encoder"] = {
        k: v
        for k, v in config["encoder"].items()
        if k not in ("dtype", "dropout", "name", "trainable")
    }
    digest.update(json.dumps(config, sort_keys=True).encode())
    digest.update(model.tokenizer.proto or b"")
    for variable in model.weights:
        value = keras.ops.convert_to_numpy(variable.value)
        digest.update(str(value.shape).encode())
        digest.update(value.astype("<f4", copy=False).tobytes())
    return digest.hexdigest()


def _config(model):
    tower, encoder = model.query_tower, model.query_tower.encoder
    config = encoder.get_config()
    config["dtype"] = encoder.dtype_policy.name
    preprocessors = (model.query_preprocessor, model.document_preprocessor)
    # Options at their defaults stay out: fingerprints are those of versions
    # that had no such options.
    unusual = {
        "normalize": (tower.normalize, True),
        "query_prefix": (preprocessors[0].prefix, ""),
        "document_prefix": (preprocessors[1].prefix, ""),
        **_projection_config(tower.projection),
    }
    return {
        "architecture": model.architecture,
        "projection_dim": 0 if tower.projection is None else model.dim,
        "query_length": preprocessors[0].sequence_length,
        "document_length": preprocessors[1].sequence_length,
        "encoder": config,
        **{k: v for k, (v, default) in unusual.items() if v != default},
    }


def _projection_config(projection):
    if projection is None:
        return {}
    activation = keras.activations.serialize(projection.activation)
    return {
        "projection_bias": (projection.use_bias, False),
        "projection_activation": (activation, "linear"),
    }


def _load_dual_encoder(cls, directory, options):
    read_manifest(directory, kind=KIND, supported_version=FORMAT_VERSION)
    config = json.loads((directory / CONFIG_FILE).read_text(encoding="utf-8"))
    options.refuse_others(
        directory,
        architecture=config["architecture"],
        projection_dim=config["projection_dim"],
    )
    encoder_config = config.pop("encoder")
    encoder_config["dtype"] = options.dtype or keras.config.dtype_policy().name
    if options.dropout is not None:
        encoder_config["dropout"] = options.dropout
    projection = None
    if config["projection_dim"]:
        projection = projection_layer(
            config["projection_dim"],
            use_bias=config.pop("projection_bias", False),
            activation=config.pop("projection_activation", None),
        )
    model = cls.from_encoder(
        T5Encoder.from_config(encoder_config),
        load_tokenizer(directory),
        projection=projection,
        **options.resolved(**config),
    )
    try:
        model.load_weights(directory / WEIGHTS_FILE)
    except ValueError as error:
        raise MismatchError(
            f"Expected in {directory / WEIGHTS_FILE} the weights that "
            f"{CONFIG_FILE} describes, with "
            f"projection_dim={config['projection_dim']}. "
            f"Received: {error} Use the config that belongs to the weights."
        ) from error
    return model
