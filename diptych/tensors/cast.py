"""Changing the dtype of floating tensors, when asked, with a count of what it cost."""

from collections.abc import Iterator
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from .dtypes import numpy_dtype

CAST_DTYPES = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16"}
"""What ``--dtype`` takes, with the code of each."""

CASTABLE = ("F64", "F32", "F16", "BF16")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class CastCounts:
    """What a cast did to values.

    Attributes:
        values: How many were cast.
        changed: How many are not what they were, those below included.
        became_inf: Finite ones that became infinite.
        became_zero: Ones other than 0 that became 0.
    """

    values: int = 0
    changed: int = 0
    became_inf: int = 0
    became_zero: int = 0

    def __add__(self, other: "CastCounts") -> "CastCounts":
        return CastCounts(
            self.values + other.values,
            self.changed + other.changed,
            self.became_inf + other.became_inf,
            self.became_zero + other.became_zero,
        )


def cast_code(dtype: str | None) -> str | None:
    """Return the code of a ``--dtype``, None for None.

    Raises:
        ValueError: If it is none of ``CAST_DTYPES``.
    """
    if dtype is not None and dtype not in CAST_DTYPES:
        raise ValueError(f"dtype={dtype!r} must be one of {', '.join(CAST_DTYPES)}")
    return None if dtype is None else CAST_DTYPES[dtype]


def target_code(code: str, asked: str | None) -> str:
    """Return the dtype code that a tensor gets: the one asked for if it is castable."""
    return asked if asked is not None and code in CASTABLE else code


def cast_values(values: np.ndarray, code: str) -> tuple[np.ndarray, CastCounts]:
    """Return the values in another floating dtype, rounded to nearest even, and the counts.

    Args:
        values: C-contiguous floating array of any shape.
        code: Dtype code of the result; that of ``values`` returns them untouched.

    Returns:
        Array of the same shape, and ``CastCounts``; a NaN stays a NaN and counts as unchanged.
    """
    dtype = numpy_dtype(code)
    if values.dtype == dtype:
        return values, CastCounts()
    result = np.empty(values.shape, dtype)
    counts = CastCounts()
    for given, made in zip(_chunks(values), _chunks(result), strict=True):
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            made[...] = _round(given, dtype)
            before, after = given.astype(np.float64), made.astype(np.float64)
        counts += CastCounts(
            values=given.size,
            changed=int(((before != after) & ~np.isnan(before)).sum()),
            became_inf=int((np.isfinite(before) & np.isinf(after)).sum()),
            became_zero=int(((before != 0) & (after == 0)).sum()),
        )
    return result, counts


def _round(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if values.dtype != np.float64 or dtype != ml_dtypes.bfloat16:
        return values.astype(dtype)
    # float64 reaches bfloat16 through float32, and two roundings to nearest are not one: the first
    # one here rounds to odd, which the second cannot mistake for a tie.
    narrow = values.astype(np.float32)
    inexact = (narrow.astype(np.float64) != values) & np.isfinite(narrow) & np.isfinite(values)
    above = np.abs(narrow.astype(np.float64)) > np.abs(values)
    bits = narrow.view(np.uint32)
    toward_zero = np.where(inexact & above, bits - 1, bits)
    odd = np.where(inexact, toward_zero | 1, bits)
    return odd.view(np.float32).astype(dtype)


def _chunks(array: np.ndarray) -> Iterator[np.ndarray]:
    flat = array.reshape(-1)
    for start in range(0, flat.size, _CHUNK):
        yield flat[start : start + _CHUNK]
