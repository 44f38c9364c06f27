"""Where an Orbax directory keeps its arrays: in files of their own, or in one database (OCDBT)."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from ...spec import CheckpointError
from ..errors import fault
from ..source import FileSource

# What TensorStore's statuses become in Python.
_STORE_ERRORS = (ValueError, IndexError, NotImplementedError, OSError, MemoryError)


class KeyStore(Protocol):
    """Values by key, such as ``layers.0.kernel/.zarray``."""

    path: Path

    def keys(self) -> Sequence[str]:
        """Return every key."""

    def read(self, key: str) -> bytes:
        """Return the value of a key that is there.

        Raises:
            CheckpointError: If it is damaged, or changed since the store was opened.
        """

    def size(self, key: str) -> int:
        """Return the bytes of the value; a database has to read it."""


class FolderStore:
    """A folder, whose files are the values.

    Args:
        path: The folder.
        files: Its files, by their path in it.
    """

    def __init__(self, path: Path, files: Mapping[str, Path]):
        self.path = path
        self._sources = {key: FileSource(file) for key, file in files.items()}

    def keys(self) -> Sequence[str]:
        return list(self._sources)

    def read(self, key: str) -> bytes:
        source = self._sources[key]
        return source.read(0, source.size)

    def size(self, key: str) -> int:
        return self._sources[key].size

    def source(self, key: str) -> FileSource:
        """Return the file of a key."""
        return self._sources[key]


class DatabaseStore:
    """A database that TensorStore reads.

    Args:
        path: The folder that has it.
        files: Its files, which must not change while it is read.

    Raises:
        CheckpointError: If it is damaged, or TensorStore is not installed.
    """

    def __init__(self, path: Path, files: Mapping[str, Path]):
        self.path = path
        self._identities = {file: _identity(file) for file in files.values()}
        tensorstore = import_tensorstore(path)
        base = {"driver": "file", "path": f"{path.resolve()}/"}
        with store_errors(path):
            opening = tensorstore.KvStore.open({"driver": "ocdbt", "base": base})
            self._store: Any = opening.result()
            # One listing: the keys of a database that changes afterwards would not fit its values.
            self._keys = [key.decode() for key in self._store.list().result()]

    def keys(self) -> Sequence[str]:
        return self._keys

    def read(self, key: str) -> bytes:
        self._compare()
        with store_errors(self.path, key):
            found = self._store.read(key).result()
        self._compare()
        if found.state != "value":
            raise fault(self.path, "missing in its database", key)
        return found.value

    def size(self, key: str) -> int:
        return len(self.read(key))

    def _compare(self) -> None:
        for file, identity in self._identities.items():
            if _identity(file) != identity:
                raise fault(file, "changed while reading")


def import_tensorstore(path: Path) -> ModuleType:
    """Return TensorStore, which comes with Orbax.

    Args:
        path: What needs it, for the message.

    Raises:
        CheckpointError: If it is not installed.
    """
    try:
        import tensorstore
    except ImportError as error:
        cause = "needs TensorStore to be read: pip install 'diptych[orbax]'"
        raise fault(path, cause) from error
    return tensorstore


@contextmanager
def store_errors(path: Path, key: str | None = None) -> Iterator[None]:
    """Make what TensorStore raises one line of ours."""
    try:
        yield
    except CheckpointError:
        raise
    except _STORE_ERRORS as error:
        # What follows in brackets is the whole specification of the store.
        cause = str(error).partition(" [tensorstore_spec=")[0].partition(" [source locations=")[0]
        raise fault(path, f"corrupt: {' '.join(cause.split())}", key) from error


def _identity(path: Path) -> tuple[int, int, int, int]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise fault(path, f"cannot be opened: {error.strerror}") from error
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
