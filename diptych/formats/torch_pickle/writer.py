"""Writing what ``torch.load(weights_only=True)`` reads, without torch."""

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from ...tensors.bits import row_major_strides
from ...tensors.dtypes import item_size
from ..limits import check_shape
from ..output import OutputFile, Planned, planned_arrays, to_bytes
from .globals import STORAGE_DTYPES, TORCH_DTYPES
from .zip_writer import ZipWriter

_STORAGES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}
_DTYPES = {dtype: name for name, dtype in TORCH_DTYPES.items()}


def write_torch_pickle(
    path: Path, plan: Sequence[Planned], arrays: Iterable[tuple[str, np.ndarray]]
) -> None:
    """Write an ordered dictionary of tensors, one tensor in memory at a time.

    Args:
        path: The file, which must not exist.
        plan: Name, dtype and shape of every tensor.
        arrays: Name and values of every tensor, in the order of ``plan``.

    Raises:
        ValueError: If the arrays are not as planned.
        OSError: If the disk fails.
    """
    with OutputFile(path) as file:
        archive = ZipWriter(file)
        archive.add("archive/data.pkl", _pickle(plan))
        archive.add("archive/byteorder", b"little")
        for index, (_, values) in enumerate(planned_arrays(plan, arrays)):
            archive.add(f"archive/data/{index}", to_bytes(values))
        archive.add("archive/version", b"3\n")
        archive.finish()


def _pickle(plan: Sequence[Planned]) -> bytes:
    """Return the pickle, of protocol 2, of an ordered dictionary."""
    pickler = _Pickler()
    pickler.parts.append(b"\x80\x02")
    pickler.add_empty_dictionary()
    pickler.parts.append(b"(")
    for index, planned in enumerate(plan):
        pickler.add_text(planned.name)
        pickler.add_tensor(index, planned.dtype, planned.shape)
    pickler.parts.append(b"u.")
    return b"".join(pickler.parts)


class _Pickler:
    """Opcodes, as ``pickletools`` documents them, each global stored once and then recalled."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self._globals: dict[tuple[str, str], int] = {}

    def add_tensor(self, index: int, dtype: str, shape: tuple[int, ...]) -> None:
        # torch stores the newer dtypes as bytes with the dtype behind, the others by class.
        by_class = dtype in _STORAGES
        self._add_global("torch._utils", "_rebuild_tensor_v2" if by_class else "_rebuild_tensor_v3")
        self.parts.append(b"((")
        self.add_text("storage")
        if by_class:
            self._add_global("torch", _STORAGES[dtype])
        else:
            self._add_global("torch.storage", "UntypedStorage")
        self.add_text(str(index))
        self.add_text("cpu")
        self._add_integer(check_shape(dtype, shape) // (item_size(dtype) if by_class else 1))
        self.parts.append(b"tQ")
        self._add_integer(0)
        self._add_integers(shape)
        self._add_integers(row_major_strides(shape))
        self.parts.append(b"\x89")
        self.add_empty_dictionary()
        if not by_class:
            self._add_global("torch", _DTYPES[dtype])
        self.parts.append(b"tR")

    def add_empty_dictionary(self) -> None:
        self._add_global("collections", "OrderedDict")
        self.parts.append(b")R")

    def add_text(self, text: str) -> None:
        encoded = text.encode()
        self.parts.append(b"X" + struct.pack("<L", len(encoded)) + encoded)

    def _add_global(self, module: str, name: str) -> None:
        index = self._globals.get((module, name))
        if index is None:
            index = self._globals[module, name] = len(self._globals)
            self.parts.append(f"c{module}\n{name}\nq".encode() + bytes([index]))
        else:
            self.parts.append(b"h" + bytes([index]))

    def _add_integers(self, values: Iterable[int]) -> None:
        self.parts.append(b"(")
        for value in values:
            self._add_integer(value)
        self.parts.append(b"t")

    def _add_integer(self, value: int) -> None:
        if value < 1 << 31:
            self.parts.append(b"J" + struct.pack("<l", value))
        else:
            encoded = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            self.parts.append(b"\x8a" + bytes([len(encoded)]) + encoded)
