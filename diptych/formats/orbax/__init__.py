"""Directories that Orbax saves."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..format import Format

if TYPE_CHECKING:
    import numpy as np

    from ..container import Container
    from ..output import Planned


class Orbax(Format):
    """A folder with the tree in ``_METADATA`` and every array in zarr chunks."""

    kind = "orbax"
    suffixes = ("_METADATA", "manifest.ocdbt")
    preferred = ("_METADATA", "manifest.ocdbt")
    bookkeeping = frozenset(("_CHECKPOINT_METADATA",))
    file_name = "_METADATA"

    def reader(self) -> Callable[[Path], "Container"]:
        from .reader import read_orbax

        return read_orbax

    def open_subfolders(self, folder: Path) -> "Container | None":
        from .steps import read_steps

        return read_steps(folder)

    def write(
        self,
        folder: Path,
        plan: "Sequence[Planned]",
        arrays: "Iterable[tuple[str, np.ndarray]]",
        *,
        file_name: str,
        max_shard_size: int | None = None,
        metadata: Mapping[str, str],
    ) -> tuple[str, ...]:
        from .writer import write_orbax

        if max_shard_size is not None:
            raise ValueError("max_shard_size: Orbax has files of their own for each tensor")
        return write_orbax(folder, plan, arrays, is_state=metadata["format"] == "flax")


FORMAT = Orbax()
