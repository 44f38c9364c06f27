"""Units in the last place of any floating dtype."""

import numpy as np


def unit_roundoff(dtype: np.dtype) -> float:
    """Return half the distance from 1 to the next larger number of a floating dtype."""
    one = np.ones(1, dtype)
    unsigned = one.view(f"u{one.dtype.itemsize}")
    return (float((unsigned + 1).view(dtype)[0]) - 1.0) / 2


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Count the representable numbers from a to b, elementwise.

    Args:
        a: Any shape and floating dtype, those of ``ml_dtypes`` included.
        b: Same shape and dtype.

    Returns:
        uint64 array of the same shape; 0 between the two zeros and between two NaNs, the largest
        uint64 between NaN and a number.

    Raises:
        TypeError: If the dtypes differ.
        ValueError: If the shapes differ.
    """
    if a.dtype != b.dtype:
        raise TypeError(f"ulp distance needs one dtype, not {a.dtype} and {b.dtype}")
    if a.shape != b.shape:
        raise ValueError(f"ulp distance needs one shape, not {a.shape} and {b.shape}")
    left, right = _ordered(a), _ordered(b)
    distance = np.asarray(np.maximum(left, right) - np.minimum(left, right))
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    distance[a_nan & b_nan] = 0
    distance[a_nan ^ b_nan] = np.iinfo(np.uint64).max
    return distance


def _ordered(array: np.ndarray) -> np.ndarray:
    """Map floats to uint64 so that neighbours differ by 1 and both zeros are one number."""
    bits = 8 * array.dtype.itemsize
    unsigned = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").astype(np.uint64)
    half = np.uint64(1 << (bits - 1))
    magnitude = unsigned & (half - np.uint64(1))
    return np.where(unsigned & half, half - magnitude, half + magnitude).reshape(array.shape)
