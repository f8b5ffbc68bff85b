"""Dual encoders whose variables have shapes and no memory."""

import contextlib
import dataclasses
from collections.abc import Iterator

import keras
from keras.src.backend.common import global_state

from tf_samtone.models.architectures import build_towers
from tf_samtone.models.model_size import ModelSize
from tf_samtone.models.t5_encoder import T5Encoder
from tf_samtone.models.tower import Tower

__all__ = ["abstract_towers", "without_memory"]

_WAITING = "uninitialized_variables"


@contextlib.contextmanager
def without_memory() -> Iterator[None]:
    """Make variables that know their shape and are never given a value.

    Within a stateless scope Keras defers initialisers. It also remembers the
    variables in order to initialise them at the end of any later scope; there
    is no public way to make it forget them (Keras 3.15).

    Yields:
        None.
    """
    before = list(global_state.get_global_attribute(_WAITING) or [])
    try:
        with keras.StatelessScope(initialize_variables=False):
            yield
    finally:
        global_state.set_global_attribute(_WAITING, before)


def abstract_towers(
    size: ModelSize, architecture: str = "sde"
) -> tuple[Tower, Tower]:
    """Make the towers of a size without the memory for their weights.

    Args:
        size: `ModelSize`; see `find_model_size`.
        architecture: str. `"sde"`: two towers start as copies of values,
            which there are none of.

    Returns:
        `(query_tower, document_tower)`, for their variables' paths and shapes
        only.
    """
    with without_memory():
        encoder = T5Encoder(**dataclasses.asdict(size.encoder))
        return build_towers(encoder, architecture, size.projection_dim)
