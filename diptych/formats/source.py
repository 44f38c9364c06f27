"""Bytes at a position: a file that must not change while it is read, or memory."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import Protocol

from .errors import fault


class Source(Protocol):
    """Something that a tensor's bytes are read from."""

    path: Path

    def read_into(self, buffer: memoryview, position: int) -> None:
        """Fill the whole buffer with the bytes from a position on."""

    def for_parts(self) -> "Source":
        """Return a source of the same bytes, of which parts can be read at little cost."""


class MemorySource:
    """Bytes that came with a file's structure, already in memory.

    Args:
        path: The file that they came from.
        data: The bytes.
    """

    def __init__(self, path: Path, data: bytes | bytearray):
        self.path = path
        self._data = data

    def read_into(self, buffer: memoryview, position: int) -> None:
        buffer[:] = memoryview(self._data)[position : position + len(buffer)]

    def for_parts(self) -> "MemorySource":
        return self


class JoinedSource:
    """Ranges of another source, one behind the other.

    Args:
        source: What they are in.
        ranges: First byte and number of bytes of each.
    """

    def __init__(self, source: Source, ranges: Sequence[tuple[int, int]]):
        self.path = source.path
        self._source, self._ranges = source, tuple(ranges)

    def read_into(self, buffer: memoryview, position: int) -> None:
        for start, length in self._ranges:
            if position < length and buffer:
                count = min(length - position, len(buffer))
                self._source.read_into(buffer[:count], start + position)
                buffer, position = buffer[count:], 0
            else:
                position = max(0, position - length)

    def for_parts(self) -> "JoinedSource":
        return self


class FileSource:
    """A regular file, opened read-only for each use, that must stay the same between uses.

    Opening it anew each time notices a file that was replaced, which a kept descriptor would not;
    reading, never mapping, makes a file that shrinks an error instead of a signal.

    Args:
        path: The file.

    Raises:
        CheckpointError: If the file cannot be opened or is no regular file.
    """

    def __init__(self, path: Path):
        self.path = path
        with self._open() as file:
            self._identity = self._identify(file)
        self.size = self._identity[2]

    def read_into(self, buffer: memoryview, position: int) -> None:
        with self.opened() as file:
            self._fill(file, buffer, position)

    def for_parts(self) -> "FileSource":
        return self

    def read(self, position: int, length: int) -> bytes:
        """Return the bytes from a position on; fewer where the file ends before."""
        with self.opened() as file:
            return self.read_from(file, position, length)

    def read_from(self, file: FileIO, position: int, length: int) -> bytes:
        """As ``read``, with the file that ``opened`` gives."""
        buffer = bytearray(max(0, min(length, self.size - position)))
        self._fill(file, memoryview(buffer), position)
        return bytes(buffer)

    @contextmanager
    def opened(self) -> Iterator[FileIO]:
        """Open the file read-only, and compare it with its first state on entry and exit.

        Raises:
            CheckpointError: If the file changed.
        """
        with self._open() as file:
            self._compare(file)
            yield file
            self._compare(file)

    def _open(self) -> FileIO:
        try:
            return open(self.path, "rb", buffering=0, opener=_open_at_once)
        except (OSError, ValueError) as error:
            raise fault(self.path, f"cannot be opened: {_reason(error)}") from error

    def _identify(self, file: FileIO) -> tuple[int, int, int, int]:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise fault(self.path, "is not a regular file")
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns

    def _compare(self, file: FileIO) -> None:
        if self._identify(file) != self._identity:
            raise fault(self.path, "changed while reading")

    def _fill(self, file: FileIO, buffer: memoryview, position: int) -> None:
        try:
            file.seek(position)
        except (OSError, OverflowError) as error:
            raise fault(
                self.path, f"truncated or corrupt: it points to its byte {position}"
            ) from error
        while buffer:
            try:
                count = file.readinto(buffer)
            except OSError as error:
                raise fault(self.path, f"cannot be read: {_reason(error)}") from error
            if not count:
                raise fault(self.path, "changed while reading: it ends too early")
            buffer = buffer[count:]


def _open_at_once(path: str, flags: int) -> int:
    # A named pipe must be refused, not waited for.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
