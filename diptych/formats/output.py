"""Files that are written once, from bytes at positions."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import numpy as np

from ..tensors.dtypes import code_of
from .limits import check_shape


class Planned(NamedTuple):
    """A tensor that will be written.

    Attributes:
        name: Its name in the file.
        dtype: A code of ``diptych.tensors.dtypes``.
        shape: Its shape.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes of its values."""
        return check_shape(self.dtype, self.shape)


class OutputFile:
    """A new file, closed when the ``with`` block ends; to sync it is the caller's.

    Args:
        path: The file, which must not exist.

    Raises:
        OSError: If it exists, or cannot be made.
    """

    def __init__(self, path: Path):
        self.path = path

    def __enter__(self) -> "OutputFile":
        self._file = open(self.path, "xb", buffering=0)
        return self

    def write(self, data: bytes | bytearray | memoryview, position: int) -> None:
        """Write all bytes from a position on."""
        self._file.seek(position)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()


def planned_arrays(
    plan: Sequence[Planned], arrays: Iterable[tuple[str, np.ndarray]]
) -> Iterator[tuple[Planned, np.ndarray]]:
    """Yield each planned tensor with its values, and take nothing beyond the last of them.

    Raises:
        ValueError: If a tensor is not the planned one.
    """
    remaining = iter(arrays)
    for planned in plan:
        name, values = next(remaining, ("nothing", np.empty(0)))
        given = Planned(name, code_of(values.dtype), values.shape)
        if given != planned:
            raise ValueError(f"{planned} was to come, {given} came")
        yield planned, values


def to_bytes(values: np.ndarray) -> memoryview:
    """Return the values' bytes in C order, least significant byte first.

    Args:
        values: Array of any strides, transposed, broadcast or reversed, and either byte order.
    """
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).data
