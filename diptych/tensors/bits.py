"""Tensors as headers and as bits: what all transforms stand on."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..spec.checks.sizes import Shape

_STRIP = 64


class TensorSpec(NamedTuple):
    """What a header says of a tensor: its dtype code and its shape."""

    dtype: str
    shape: Shape


def bit_view(array: np.ndarray) -> np.ndarray:
    """Return the same memory as unsigned integers (void above 8 bytes), which nothing computes."""
    unsigned = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    return array.view(unsigned.get(array.itemsize, np.dtype((np.void, array.itemsize))))


def same_bytes(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two C-contiguous arrays hold the same bytes, whatever they mean."""
    if a.nbytes != b.nbytes:
        return False
    return all(np.array_equal(x, y) for x, y in zip(_pieces(a), _pieces(b), strict=True))


def contiguous(array: np.ndarray) -> np.ndarray:
    """Return an array in C order, itself if it is."""
    if array.flags.c_contiguous:
        return array
    bits = bit_view(array)
    if bits.ndim != 2 or not bits.flags.f_contiguous:
        return bits.copy(order="C").view(array.dtype)  # as bits, so that no NaN is touched
    # A transposed matrix: in strips, as whole rows it would miss the cache at every number.
    copy = np.empty(bits.shape, bits.dtype)
    for start in range(0, bits.shape[1], _STRIP):
        copy[:, start : start + _STRIP] = bits[:, start : start + _STRIP]
    return copy.view(array.dtype)


def specs_of(arrays: Sequence[np.ndarray]) -> list[TensorSpec]:
    """Return what a header would say of arrays in memory."""
    return [TensorSpec(array.dtype.name, array.shape) for array in arrays]


def row_major_strides(shape: Shape) -> tuple[int, ...]:
    """Return the elements from one index to the next, per axis, of an array in C order."""
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def check_one(inputs: Sequence[object]) -> None:
    """Raise ValueError unless there is one input."""
    if len(inputs) != 1:
        raise ValueError(f"one tensor expected, got {len(inputs)}")


def check_same_dtype(specs: Sequence[TensorSpec], count: int) -> None:
    """Raise ValueError unless there are ``count`` inputs of one dtype."""
    if len(specs) != count:
        raise ValueError(f"{count} tensors expected, got {len(specs)}")
    dtypes = {spec.dtype for spec in specs}
    if len(dtypes) > 1:
        raise ValueError(f"one dtype expected, got {', '.join(sorted(dtypes))}")


def _pieces(array: np.ndarray) -> Iterator[np.ndarray]:
    flat = array.reshape(-1).view(np.uint8)
    for start in range(0, flat.size, 1 << 22):
        yield flat[start : start + (1 << 22)]
