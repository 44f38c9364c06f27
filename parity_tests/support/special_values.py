"""Values and memory layouts that careless code changes on the way."""

import numpy as np

from diptych.tensors.dtypes import numpy_dtype

_SPECIAL_BITS = {
    4: (
        *(0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000),
        *(0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001, 0xFFBFFFFF, 0x7FA55AA5, 0x3F800001),
    ),
    8: (
        *(0x0000000000000000, 0x8000000000000000, 0x0000000000000001, 0x000FFFFFFFFFFFFF),
        *(0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000000),
        *(0x7FF0000000000001, 0xFFF7FFFFFFFFFFFF, 0x7FF5A5A5A5A5A5A5, 0x3FF0000000000001),
    ),
}


def every_bit_pattern(code: str) -> np.ndarray:
    """All values of 8- and 16-bit dtypes; specials (quiet and signalling NaN payloads, negative

    zero, denormals, infinities) and 4,096 random patterns of wider ones.

    Returns:
        Array ``(rows, 2)`` of the dtype.
    """
    dtype = numpy_dtype(code)
    part = dtype.itemsize // (2 if dtype.kind == "c" else 1)
    if code == "BOOL":
        bits = np.array([0, 1], np.uint8)
    elif part <= 2:
        bits = np.arange(1 << (8 * part)).astype(f"u{part}")
    else:
        random = np.random.default_rng(0).integers(0, 1 << 8 * part, 4096, f"u{part}")
        bits = np.concatenate([np.array(_SPECIAL_BITS[part], f"u{part}"), random])
    return bits.view(dtype).reshape(-1, 2 if bits.view(dtype).size % 2 == 0 else 1)


def same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    """Whether dtype, shape and every bit are the same."""
    same_kind = first.dtype == second.dtype and first.shape == second.shape
    return same_kind and first.tobytes() == second.tobytes()


_BASE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
SPECIAL_ARRAYS = {
    "transposed": np.arange(6).reshape(2, 3).T,
    "Fortran order": np.asfortranarray(_BASE),
    "axes moved": np.moveaxis(_BASE, 0, 1),
    "every second": _BASE[:, :, ::2],
    "reversed": _BASE[:, ::-1],
    "broadcast": np.broadcast_to(np.array([1.0, 2.0]), (4, 2)),
    "broadcast scalar": np.broadcast_to(np.float32(7), (3, 5)),
    "big-endian": np.arange(3, dtype=">i4"),
    "big-endian, transposed": np.arange(6, dtype=">f8").reshape(2, 3).T,
    "a view of much": np.arange(1 << 16, dtype=np.int32)[77:80],
    "read-only": np.frombuffer(b"\1\2\3\4", np.uint8),
    "one number": np.array(3.5),
    "no rows": np.empty((0, 3), np.float16),
    "no columns": np.empty((3, 0), np.int64),
    "one by one": np.ones((1, 1), np.uint16),
    "strided booleans": np.array([True, False, True])[::2],
}
