"""What a README.md says about a model."""

import dataclasses
import os
import pathlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tf_samtone.checkpoints._json_file import read_json_object
from tf_samtone.checkpoints._model_card_text import (
    LIBRARIES,
    evaluation,
    header,
    licence,
    limits,
    summary,
    training,
    usage,
)
from tf_samtone.errors import CorruptFileError, InvalidInputError

if TYPE_CHECKING:
    from tf_samtone.models.dual_encoder import DualEncoder

_RECIPE = "recipe.json"
_RESULTS = "results.json"


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What is known about a model beside its weights.

    >>> card = ModelCard(title="MedQuAD questions", licence="apache-2.0")
    >>> card.language
    ''

    Attributes:
        title: str. Heading. Defaults to `"Dual encoder"`.
        description: str. A paragraph on what the model is for. Defaults to
            `""`.
        base_model: str. Name of the weights that training started from.
            Defaults to `""`.
        licence: str or `None`. Identifier as Hugging Face has them, e.g.
            `"apache-2.0"`. Defaults to `None`: the card says that it is to be
            filled in.
        language: str. ISO 639 code, e.g. `"en"`. Defaults to `""`.
        datasets: names of the training data. Defaults to none.
        recipe: dict. Training recipe, nested, as in `recipe.json`. Defaults
            to none.
        metrics: dict `{row: {split: {metric: float}}}`, as `figures` in
            `results.json`. Defaults to none.
        command: str. Command that trains the model. Defaults to `""`.

    Reference:
        Mitchell et al., 2019, Model Cards for Model Reporting,
        https://arxiv.org/abs/1810.03993
    """

    title: str = "Dual encoder"
    description: str = ""
    base_model: str = ""
    licence: str | None = None
    language: str = ""
    datasets: tuple[str, ...] = ()
    recipe: dict[str, Any] = field(default_factory=dict)
    metrics: dict[str, dict[str, dict[str, float]]] = field(
        default_factory=dict
    )
    command: str = ""

    @classmethod
    def from_run(
        cls, folder: str | os.PathLike[str], **changes: Any
    ) -> "ModelCard":
        """Read what a run of `samtone-train` recorded.

        Args:
            folder: output folder of the run, with `recipe.json` and
                `results.json`.
            **changes: attributes in place of those of the run, e.g.
                `licence="apache-2.0"`.

        Returns:
            `ModelCard`. Names of data and base weights are the last parts of
            their paths.

        Raises:
            CorruptFileError: if a file is malformed.
            InvalidInputError: if there is no finished run in the folder.
        """
        root = pathlib.Path(folder)
        for name in (_RECIPE, _RESULTS):
            if not (root / name).is_file():
                raise InvalidInputError(
                    f"Expected the output folder of samtone-train, with "
                    f"{_RECIPE} and {_RESULTS}. Received: {root} without "
                    f"{name}. Check the path, or let the run finish."
                )
        recipe = read_json_object(root / _RECIPE)
        figures: Any = read_json_object(root / _RESULTS).get("figures")
        _check_figures(figures, root / _RESULTS)
        data, model = (recipe.get(key) or {} for key in ("data", "model"))
        name = data.get("path") or data.get("reader") or ""
        card = cls(
            title=str(recipe.get("name") or cls.title),
            description=str(recipe.get("description") or ""),
            base_model=pathlib.PurePath(model.get("preset") or "").name,
            datasets=(pathlib.PurePath(name).name,) if name else (),
            recipe=recipe,
            metrics=figures,
        )
        return dataclasses.replace(card, **changes)

    def render(self, model: "DualEncoder", format: str) -> str:
        """Write the card of a model in one format.

        Args:
            model: `DualEncoder`.
            format: str. `"sentence_transformers"` or `"hugging_face"`, which
                decides the code under "Usage".

        Returns:
            str. Markdown after a YAML header, as Hugging Face reads it; the
            same for equal models and cards.

        Raises:
            InvalidInputError: if the format is unknown.
        """
        if format not in LIBRARIES:
            raise InvalidInputError(
                f"Expected `format` to be one of {list(LIBRARIES)}. Received: "
                f"format={format!r}. Other formats have no card."
            )
        parts = [
            header(self, format),
            summary(self, model),
            usage(model, format),
            training(self),
            evaluation(self),
            limits(model, format),
            licence(self),
        ]
        return "\n\n".join(part for part in parts if part) + "\n"


def _check_figures(figures: Any, path: pathlib.Path) -> None:
    """Raise unless figures are `{row: {split: {metric: number}}}`."""

    def is_number(value: Any) -> bool:
        return type(value) in (int, float)

    def is_table(value: Any, depth: int) -> bool:
        if depth == 0:
            return is_number(value)
        return isinstance(value, dict) and all(
            is_table(item, depth - 1) for item in value.values()
        )

    if not figures or not is_table(figures, 3):
        raise CorruptFileError(
            f"Expected `figures` of {{row: {{split: {{metric: number}}}}}} in "
            f"{path}. Received: figures={figures!r}. Let the run finish, or "
            "evaluate it again."
        )
