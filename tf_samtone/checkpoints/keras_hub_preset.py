"""Dual encoders from KerasHub-style presets of ours."""

import functools
import os
import pathlib

import keras

from tf_samtone.checkpoints._assign import assign_streamed, check_equal
from tf_samtone.checkpoints._keras_hub_model import (
    check_projection,
    check_surplus,
    check_twins,
    text_options,
    tower_folders,
)
from tf_samtone.checkpoints._keras_hub_weights import KerasHubWeights
from tf_samtone.checkpoints.keras_hub_folder import (
    KerasHubTower,
    read_architecture,
)
from tf_samtone.checkpoints.keras_hub_t5 import (
    assign_keras_hub_t5,
    load_keras_hub_t5,
)
from tf_samtone.models.architectures import check_architecture
from tf_samtone.models.dual_encoder import DualEncoder
from tf_samtone.models.load_options import LoadOptions
from tf_samtone.models.tower import projection_layer
from tf_samtone.text import load_tokenizer


def load_keras_hub_dual_encoder(
    directory: str | os.PathLike[str],
    options: LoadOptions | None = None,
    *,
    model_class: type[DualEncoder] = DualEncoder,
) -> DualEncoder:
    """Load a dual encoder that `save_keras_hub_preset` wrote.

    Also the folder of a `T5TextEmbedder`, which is a single tower. Weights
    that the towers share are shared again.

    Args:
        directory: the preset.
        options: `LoadOptions`. Defaults to its defaults.
        model_class: `DualEncoder` or a subclass.

    Returns:
        `DualEncoder`.

    Raises:
        CorruptFileError: if a file is missing or malformed, or a weight is
            not finite.
        InvalidInputError: if there is no vocabulary.
        MismatchError: if files do not fit together, or an option contradicts
            them.
    """
    options = options or LoadOptions()
    folder = pathlib.Path(directory)
    architecture = read_architecture(folder)
    check_architecture(architecture)
    towers = [
        KerasHubTower.read(path) for path in tower_folders(folder, architecture)
    ]
    options.refuse_others(
        folder,
        architecture=architecture,
        projection_dim=towers[0].projection_dim,
    )
    check_twins(towers)
    for tower in towers:
        check_surplus(tower)
    # The small file first: a folder without it costs no loading of weights.
    tokenizer = load_tokenizer(towers[0].directory)
    encoder = load_keras_hub_t5(
        towers[0].directory, dtype=options.dtype, dropout=options.dropout
    )
    projection = None
    if towers[0].projection_dim:
        projection = _new_projection(towers[0], encoder.hidden_dim)
        _assign_projection(projection, towers[0])
    model = model_class.from_encoder(
        encoder,
        tokenizer,
        projection=projection,
        **options.resolved(
            architecture=architecture,
            projection_dim=towers[0].projection_dim,
            normalize=towers[0].normalize,
            **text_options(towers),
        ),
    )
    if len(towers) == 2:
        _assign_document_tower(model, towers[1])
    return model


def _new_projection(tower: KerasHubTower, width: int) -> keras.layers.Dense:
    projection = projection_layer(
        tower.projection_dim,
        use_bias=tower.projection_bias,
        activation=tower.projection_activation,
    )
    projection.build((None, width))
    return projection


def _assign_projection(
    projection: keras.layers.Dense,
    tower: KerasHubTower,
    *,
    is_shared: bool = False,
) -> None:
    weights = KerasHubWeights(tower.directory, stem="task")
    names = check_projection(tower, weights, projection.kernel.shape[0])
    for name, variable in zip(names, projection.weights, strict=True):
        read_rows = functools.partial(weights.read_rows, name)
        if is_shared:
            check_equal(variable, read_rows, weights.path)
        else:
            assign_streamed(variable, read_rows)


def _assign_document_tower(model: DualEncoder, tower: KerasHubTower) -> None:
    query, document = model.query_tower, model.document_tower
    assign_keras_hub_t5(
        document.encoder, tower.directory, shared=query.encoder.variables
    )
    if document.projection is not None:
        _assign_projection(
            document.projection,
            tower,
            is_shared=document.projection is query.projection,
        )
