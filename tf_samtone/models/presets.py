"""Saving and loading of dual encoders."""

import hashlib
import json
from pathlib import Path

import keras
import keras_hub

from tf_samtone._files import (
    MANIFEST_NAME,
    atomic_directory,
    read_manifest,
    write_manifest,
)
from tf_samtone._version import __version__
from tf_samtone.errors import InvalidInputError, MismatchError
from tf_samtone.models.architectures import (
    check_architecture,
    check_projection_dim,
)
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.text import load_tokenizer, save_tokenizer

__all__ = ["fingerprint", "load", "save"]

KIND = "dual_encoder"
FORMAT_VERSION = 1
_CONFIG = "config.json"
_WEIGHTS = "model.weights.h5"
_DEFAULTS = {
    "architecture": "sde",
    "projection_dim": 768,
    "query_length": 64,
    "document_length": 256,
}
# What a saved model fixes; the rest may be chosen anew at every load.
_FIXED = ("architecture", "projection_dim")


def save(model, directory, *, overwrite=False):
    """Writes a dual encoder; see `DualEncoder.save_to_preset`."""
    with atomic_directory(directory, overwrite=overwrite) as temporary:
        config = json.dumps(_config(model), indent=2, sort_keys=True)
        (temporary / _CONFIG).write_text(config + "\n", encoding="utf-8")
        model.save_weights(temporary / _WEIGHTS)
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


def load(cls, preset, *, requested, dtype=None):
    """Loads a preset of any kind; see `DualEncoder.from_preset`."""
    chosen = {k: v for k, v in requested.items() if v is not None}
    dropout = chosen.pop("dropout", None)
    if (Path(preset) / MANIFEST_NAME).is_file():
        model = _load_dual_encoder(cls, Path(preset), chosen, dtype)
    else:
        options = {**_DEFAULTS, **chosen}
        # Here too, so that a typing error costs no loading of weights.
        check_architecture(options["architecture"])
        check_projection_dim(options["projection_dim"])
        model = cls.from_encoder(*_load_t5(preset, dtype), **options)
    return _with_dropout(cls, model, dropout)


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
    encoder = model.query_tower.encoder
    config = encoder.get_config()
    config["dtype"] = encoder.dtype_policy.name
    return {
        "architecture": model.architecture,
        "projection_dim": model.dim,
        "query_length": model.query_preprocessor.sequence_length,
        "document_length": model.document_preprocessor.sequence_length,
        "encoder": config,
    }


def _load_dual_encoder(cls, directory, chosen, dtype):
    read_manifest(directory, kind=KIND, supported_version=FORMAT_VERSION)
    config = json.loads((directory / _CONFIG).read_text(encoding="utf-8"))
    for name in _FIXED:
        if chosen.get(name, config[name]) != config[name]:
            raise MismatchError(
                f"Expected {name}={config[name]!r}, which {directory} was "
                f"saved with. Received: {name}={chosen[name]!r}. Leave the "
                "argument out, or start from T5 weights instead."
            )
    encoder_config = config.pop("encoder")
    encoder_config["dtype"] = dtype or keras.config.dtype_policy().name
    encoder = T5Encoder.from_config(encoder_config)
    model = cls.from_encoder(
        encoder, load_tokenizer(directory), **{**config, **chosen}
    )
    try:
        model.load_weights(directory / _WEIGHTS)
    except ValueError as error:
        raise MismatchError(
            f"Expected in {directory / _WEIGHTS} the weights that {_CONFIG} "
            f"describes, with projection_dim={config['projection_dim']}. "
            f"Received: {error} Use the config that belongs to the weights."
        ) from error
    return model


def _load_t5(preset, dtype):
    # The layer above this one: checkpoints know models, not the reverse. Only
    # this convenience reaches up, and only when it is called.
    from tf_samtone import checkpoints

    if not Path(preset).is_dir():
        encoder = checkpoints.load_keras_hub_t5(preset, dtype=dtype)
        return encoder, keras_hub.models.T5Tokenizer.from_preset(str(preset))
    if not (Path(preset) / _CONFIG).is_file():
        raise InvalidInputError(
            "Expected `preset` to be a folder of save_to_preset, of KerasHub "
            "or of Hugging Face (config.json, model.safetensors, "
            f"spiece.model). Received: preset={str(preset)!r}, a folder "
            f"without {_CONFIG}. Check the path."
        )
    # The small file first: a folder without it costs no loading of weights.
    tokenizer = load_tokenizer(preset)
    if checkpoints.is_hugging_face_folder(preset):
        return checkpoints.load_hugging_face_t5(preset, dtype=dtype), tokenizer
    return checkpoints.load_keras_hub_t5(preset, dtype=dtype), tokenizer


def _with_dropout(cls, model, dropout):
    """Returns the model with another dropout rate.

    Keras decides at construction whether a dropout layer has a random state,
    so a changed rate needs new layers.
    """
    encoder = model.query_tower.encoder
    if dropout is None or dropout == encoder.dropout:
        return model
    config = {**encoder.get_config(), "dropout": dropout}
    twin = cls.from_encoder(
        T5Encoder.from_config(config),
        model.tokenizer,
        architecture=model.architecture,
        projection_dim=model.dim,
        query_length=model.query_preprocessor.sequence_length,
        document_length=model.document_preprocessor.sequence_length,
    )
    for target, source in zip(twin.weights, model.weights, strict=True):
        target.assign(source)
    return twin
