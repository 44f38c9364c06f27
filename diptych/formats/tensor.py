"""One stored tensor: what its file says about it, and its values when they are asked for."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import as_strided

from ..tensors.bits import TensorSpec
from ..tensors.dtypes import item_size, numpy_dtype
from .errors import fault
from .source import Source

_BLOCK = 1 << 24
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor in a file, not yet read.

    Attributes:
        name: Its name in the file.
        dtype: A code of ``diptych.tensors.dtypes``.
        shape: Its shape.
        source: Where its bytes are.
        position: Its first element's place in the source, in bytes.
        strides: Elements from one index to the next, per axis; None in C order.
        big_endian: Whether each element's bytes are stored most significant first.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    source: Source
    position: int
    strides: tuple[int, ...] | None = None
    big_endian: bool = False

    @property
    def path(self) -> Path:
        """Return the file that holds it."""
        return self.source.path

    @property
    def spec(self) -> TensorSpec:
        """Return its header."""
        return TensorSpec(self.dtype, self.shape)

    @property
    def nbytes(self) -> int:
        """Return the bytes of its values."""
        return math.prod(self.shape) * item_size(self.dtype)

    def read(self) -> np.ndarray:
        """Return its values, in memory of their own, C order and native byte order.

        Returns:
            Array of ``shape`` and of the numpy or ml_dtypes dtype of ``dtype``.

        Raises:
            CheckpointError: If the file changed, or a boolean is neither 0 nor 1.
        """
        values = np.empty(self.shape, numpy_dtype(self.dtype))
        if values.size == 0:
            return values
        if self.strides is None:
            self.source.read_into(_bytes(values), self.position)
        else:
            # Bits are copied as unsigned integers, so that no NaN is touched.
            words = values.view(_word(values.itemsize))
            self._gather(self.source.for_parts(), words, self.position, self.strides)
        if self.big_endian == (sys.byteorder == "little"):
            part = 2 if values.dtype.kind == "c" else 1
            values.reshape(-1).view(_word(values.itemsize // part)).byteswap(inplace=True)
        if values.dtype == np.bool_ and values.view(np.uint8).max() > 1:
            raise fault(self.path, "a boolean is stored as neither 0 nor 1", self.name)
        return values

    def pieces(self) -> Iterator[memoryview]:
        """Yield the bytes that ``read`` gives, in order; each piece is overwritten by the next.

        Raises:
            CheckpointError: As ``read``.
        """
        is_native = self.big_endian == (sys.byteorder == "big")
        if self.strides is not None or not is_native or self.dtype == "BOOL":
            yield _bytes(self.read())
            return
        source = self.source.for_parts()
        buffer = memoryview(bytearray(min(_PIECE, self.nbytes)))
        for start in range(0, self.nbytes, _PIECE):
            piece = buffer[: self.nbytes - start]
            source.read_into(piece, self.position + start)
            yield piece

    def _gather(
        self, source: Source, out: np.ndarray, position: int, strides: tuple[int, ...]
    ) -> None:
        """Fill ``out``, block by block along its longest stride, never over 16 MiB at a time."""
        # What lies between the first and the last element is read at one go and then strided in
        # memory: a read per element would be slow, and the whole span may be many times the tensor.
        span = 1 + sum((size - 1) * step for size, step in zip(out.shape, strides, strict=True))
        if span * out.itemsize <= _BLOCK:
            stored = np.empty(span, out.dtype)
            source.read_into(_bytes(stored), position)
            out[...] = as_strided(stored, out.shape, [step * out.itemsize for step in strides])
            return
        # Cut where neighbours lie farthest apart: the blocks' spans then overlap least.
        axis = max(range(out.ndim), key=lambda index: strides[index] * (out.shape[index] > 1))
        step = strides[axis] * out.itemsize
        count = max(1, _BLOCK // step - 1)
        for start in range(0, out.shape[axis], count):
            block = (slice(None),) * axis + (slice(start, start + count),)
            self._gather(source, out[block], position + start * step, strides)


def _bytes(values: np.ndarray) -> memoryview:
    return values.reshape(-1).view(np.uint8).data


def _word(size: int) -> np.dtype:
    return np.dtype(np.complex128 if size == 16 else f"u{size}")
