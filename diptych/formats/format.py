"""What the rest of Diptych asks of a kind of container."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    from .container import Container
    from .output import Planned

WriteFile: TypeAlias = "Callable[[Path, Sequence[Planned], Iterable[tuple[str, np.ndarray]]], None]"
"""Writes one new file: its path, the plan of its tensors, and their names and values in order."""


class Format:
    """A kind of container; the one instance of each subclass is listed in ``FORMATS``.

    Readers and writers are imported inside the methods: the command names all kinds at its start.
    A kind that is only read leaves ``file_name`` empty and ``writer`` alone.

    Attributes:
        kind: What users call it.
        suffixes: The endings of its files.
        preferred: The names that weights usually have, best first.
        bookkeeping: Names with such an ending that are no weights.
        separator: What an index has between the parts of a name, where files have a dot.
        file_name: The name that a single file is given.
        file_names: The name in those layouts in which it is another.
    """

    kind: str
    suffixes: tuple[str, ...]
    preferred: tuple[str, ...]
    bookkeeping: frozenset[str] = frozenset()
    separator: str = "."
    file_name: str = ""
    file_names: Mapping[str, str] = MappingProxyType({})

    @property
    def is_written(self) -> bool:
        """Return whether files of this kind are also written."""
        return bool(self.file_name)

    def name_in(self, layout: str) -> str:
        """Return the name of a single file of weights; shards and index are named after it."""
        return self.file_names.get(layout, self.file_name)

    def sniff(self, start: bytes, size: int) -> bool:
        """Return whether a file is of this kind, by its first 512 bytes and its size."""
        return False

    def reader(self) -> Callable[[Path], "Container"]:
        """Return the function that reads the headers of one file.

        It raises CheckpointError if the file is damaged, is something else, or holds what is not
        read.
        """
        raise NotImplementedError

    def pick(self, container: "Container") -> "Container":
        """Return a container with the model taken out of all that was read."""
        return container

    def open(self, path: Path) -> "Container":
        """Return the model in a file, or in an index and the files that it names.

        Raises:
            CheckpointError: If it is damaged, is something else, or holds what is not read.
        """
        from .shards import INDEX_SUFFIX, read_sharded

        if path.name.endswith(INDEX_SUFFIX):
            return self.pick(read_sharded(path, self.reader(), self.separator))
        return self.pick(self.reader()(path))

    def open_subfolders(self, folder: Path) -> "Container | None":
        """Return what lies below a folder that has no files of weights itself, None for nothing.

        Raises:
            CheckpointError: If it is damaged, is something else, or holds what is not read.
        """
        return None

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
        """Write one file, or several and their index, one tensor in memory at a time.

        Every file is new; nothing is synced, renamed or deleted.

        Args:
            folder: Where to write.
            plan: Name, dtype and shape of every tensor.
            arrays: Name and values of every tensor, in the order of ``plan``.
            file_name: The name of a single file; shards and index are named after it.
            max_shard_size: The most bytes of tensors in a file; None writes a single file.
            metadata: Texts for the header of safetensors, "format" among them; Orbax wraps every
                array as an ``nnx.State`` does where it is "flax".

        Returns:
            The names of the files written.

        Raises:
            ValueError: If the arrays are not as planned, or the container lacks a dtype.
            OSError: If the disk fails.
        """
        from .shards import write_sharded

        writer = self.writer(metadata)
        return write_sharded(
            folder, file_name, plan, arrays, max_shard_size, writer, self.separator
        )

    def writer(self, metadata: Mapping[str, str]) -> WriteFile:
        """Return the function that writes a single file with these texts in its header."""
        raise NotImplementedError
