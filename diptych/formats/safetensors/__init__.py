"""The files of safetensors."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..format import Format
from ..signatures import is_safetensors

if TYPE_CHECKING:
    import numpy as np

    from ..container import Container
    from ..output import Planned


class Safetensors(Format):
    """A header in JSON, then the values."""

    kind = "safetensors"
    suffixes = (".safetensors",)
    preferred = ("model.safetensors",)
    file_name = "model.safetensors"

    def sniff(self, start: bytes, size: int) -> bool:
        return is_safetensors(start, size)

    def read(self, path: Path) -> "Container":
        from .reader import read_safetensors

        return read_safetensors(path)

    def write_file(
        self,
        path: Path,
        plan: "Sequence[Planned]",
        arrays: "Iterable[tuple[str, np.ndarray]]",
        *,
        metadata: Mapping[str, str],
    ) -> None:
        from .writer import write_safetensors

        write_safetensors(path, plan, arrays, metadata)


FORMAT = Safetensors()
