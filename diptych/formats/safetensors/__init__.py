"""The files of safetensors."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ..format import Format, WriteFile
from ..signatures import is_safetensors

if TYPE_CHECKING:
    from ..container import Container


class Safetensors(Format):
    """A header in JSON, then the values."""

    kind = "safetensors"
    suffixes = (".safetensors",)
    preferred = ("model.safetensors",)
    file_name = "model.safetensors"

    def sniff(self, start: bytes, size: int) -> bool:
        return is_safetensors(start, size)

    def reader(self) -> Callable[[Path], "Container"]:
        from .reader import read_safetensors

        return read_safetensors

    def writer(self, metadata: Mapping[str, str]) -> WriteFile:
        from .writer import write_safetensors

        return partial(write_safetensors, metadata=metadata)


FORMAT = Safetensors()
