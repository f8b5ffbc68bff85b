"""A dual encoder as a SavedModel that takes strings."""

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from tf_samtone._files import atomic_directory, atomic_write_text
from tf_samtone._version import __version__

# TensorFlow is imported by the functions that need it, because the command
# lines import this package and should answer --help at once.
if TYPE_CHECKING:
    from tf_samtone.models import DualEncoder

# Files under assets.extra travel with a SavedModel and are not interpreted.
METADATA_FILE = "assets.extra/tf_samtone.json"


def export_saved_model(
    model: "DualEncoder",
    directory: str | os.PathLike[str],
    *,
    overwrite: bool = False,
) -> None:
    """Writes a SavedModel that turns strings into embeddings.

    The result follows the TF Hub convention for reusable text models and
    needs only `tensorflow` and `tensorflow_text` (its tokenizer ops) in the
    process that loads it:

        import tensorflow as tf
        import tensorflow_text
        encode = tf.saved_model.load(directory)
        embeddings = encode(["a question"])    # float32 [batch, dim]

    Calling the loaded object, its attribute `serve`, and the signature
    `serving_default` encode **queries**. When both towers are one
    (`architecture="sde"`) documents differ only by their longer limit on the
    number of tokens; for every other architecture use the signature
    `encode_documents` for them. All signatures take `inputs`, string
    `[batch]`, and return `embeddings`, float32 `[batch, dim]`; the third one
    is `encode_queries`.

    Text is cut at the limits of `model.query_preprocessor` and
    `model.document_preprocessor`, and padded to the longest row of the batch.
    The fingerprint of the model, by which an index recognises it, is written
    to `assets.extra/tf_samtone.json`.

    Args:
        model: `DualEncoder`, built and with finite weights.
        directory: folder to write, which appears complete or not at all. TF
            Serving wants its last part to be an integer version.
        overwrite: bool. Replace a folder that holds files. Defaults to
            `False`.

    Raises:
        InvalidInputError: if the model is no built `DualEncoder`, or a
            weight is NaN or infinite.
        OutputExistsError: if the folder holds files and `overwrite` is false.

    Reference:
        TensorFlow Hub, Reusable SavedModels,
        https://www.tensorflow.org/hub/reusable_saved_models
    """
    import tensorflow as tf

    from tf_samtone.export._text_module import TextModule
    from tf_samtone.models.check_finite import check_finite

    check_finite(model)
    with atomic_directory(directory, overwrite=overwrite) as temporary:
        module = TextModule(model)
        tf.saved_model.save(
            module, str(temporary), signatures=module.serving_signatures()
        )
        _write_metadata(model, temporary)


def _write_metadata(model: "DualEncoder", directory: Path) -> None:
    metadata = {
        "dim": model.dim,
        "document_length": model.document_preprocessor.sequence_length,
        "model_fingerprint": model.fingerprint(),
        "query_length": model.query_preprocessor.sequence_length,
        "tf_samtone_version": __version__,
    }
    path = directory / METADATA_FILE
    path.parent.mkdir(exist_ok=True)
    atomic_write_text(path, json.dumps(metadata, indent=2) + "\n")
