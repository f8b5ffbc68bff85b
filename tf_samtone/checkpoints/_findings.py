"""What has been found out about a folder so far."""

import contextlib
import dataclasses
import hashlib
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any

from tf_samtone._files import sha256_of_file
from tf_samtone.errors import SamToNeError
from tf_samtone.models.architecture_checks import check_vocabulary
from tf_samtone.models.encoder_size import EncoderSize
from tf_samtone.models.model_sizes import MODEL_SIZES
from tf_samtone.text.vocabulary_file import VocabularyFile

__all__ = ["Findings"]

_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


class Findings:
    """Facts and problems of a folder, in the order in which they turned up.

    Args:
        root: the folder.

    Attributes:
        root: likewise.
        facts: dict of JSON values.
        problems: list of str.
    """

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.facts: dict[str, Any] = {}
        self.problems: list[str] = []

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Turn an error that a loader would raise into a problem."""
        try:
            yield
        except (SamToNeError, OSError) as error:
            problem = " ".join(str(error).split())
            if problem not in self.problems:
                self.problems.append(problem)

    def add_encoder(self, size: EncoderSize) -> None:
        """Add the sizes of the encoder, and their names if published."""
        self.facts["encoder"] = dataclasses.asdict(size)
        names = [n for n, s in MODEL_SIZES.items() if s.encoder == size]
        self.facts["published_sizes"] = names

    def add_parameters(
        self, architecture: str, size: EncoderSize, projection: int = 0
    ) -> int:
        """Add, and return, the number of weights of both towers.

        Args:
            architecture: str. A key of `ARCHITECTURES`.
            size: `EncoderSize`.
            projection: int. Number of weights of a projection. Defaults to
                `0`.
        """
        count = size.parameters + projection
        if architecture != "sde":
            count *= 2
        if architecture == "ade-spl":
            count -= projection
        if architecture in ("ade-ste", "ade-fte"):
            count -= size.vocabulary_size * size.hidden_dim
        self.facts["parameters"] = count
        return count

    def add_projection(
        self,
        width: int,
        *,
        bias: bool = False,
        activation: str | None = "linear",
    ) -> None:
        """Add what follows the pooling; 0 for no projection."""
        self.facts["projection"] = {"dim": width} | (
            {"bias": bias, "activation": activation or "linear"}
            if width
            else {}
        )

    def add_tokenizer(
        self, folder: pathlib.Path, size: EncoderSize | None
    ) -> None:
        """Add the vocabulary of a folder; see if the encoder has its rows."""
        with self.collecting():
            vocabulary = VocabularyFile.read(folder)
            self.facts["tokenizer"] = {
                "file": self._name(vocabulary.path),
                "pieces": vocabulary.num_pieces,
                "sha256": hashlib.sha256(vocabulary.proto).hexdigest(),
            }
            if size is not None:
                check_vocabulary(vocabulary, size)

    def add_weights(
        self, files: Iterable[pathlib.Path], dtypes: Iterable[str]
    ) -> None:
        """Add the files of weights.

        Args:
            files: paths. Their digest is that of `sha256sum`: of the one
                file, or of the lines that it prints for several.
            dtypes: names of the types in them.
        """
        found = {self._name(path): path for path in files}
        digests = {n: sha256_of_file(path) for n, path in sorted(found.items())}
        if len(digests) == 1:
            (digest,) = digests.values()
        else:
            lines = "".join(f"{d}  {name}\n" for name, d in digests.items())
            digest = hashlib.sha256(lines.encode()).hexdigest()
        self.facts["weights"] = {
            "files": len(digests),
            "bytes": sum(path.stat().st_size for path in found.values()),
            "dtypes": sorted({_DTYPES.get(kind, kind) for kind in dtypes}),
            "sha256": digest,
        }

    def _name(self, path: pathlib.Path) -> str:
        return path.relative_to(self.root).as_posix()
