"""The dtypes that checkpoints hold, by the codes that safetensors uses for them."""

from types import MappingProxyType

import ml_dtypes
import numpy as np

CODES = MappingProxyType(
    {
        "BOOL": np.dtype(np.bool_),
        "U8": np.dtype(np.uint8),
        "I8": np.dtype(np.int8),
        "U16": np.dtype(np.uint16),
        "I16": np.dtype(np.int16),
        "U32": np.dtype(np.uint32),
        "I32": np.dtype(np.int32),
        "U64": np.dtype(np.uint64),
        "I64": np.dtype(np.int64),
        "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn),
        "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2),
        "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
        "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
        "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
        "F16": np.dtype(np.float16),
        "BF16": np.dtype(ml_dtypes.bfloat16),
        "F32": np.dtype(np.float32),
        "F64": np.dtype(np.float64),
        "C64": np.dtype(np.complex64),
        "C128": np.dtype(np.complex128),
    }
)
"""Every dtype that we carry, by code; C128 is the one code that safetensors itself lacks."""

_CODE_BY_NAME = {dtype.name: code for code, dtype in CODES.items()}


def numpy_dtype(code: str) -> np.dtype:
    """Return the native numpy dtype of a code.

    Raises:
        ValueError: If the code is not one of ``CODES``.
    """
    if code not in CODES:
        raise ValueError(f"dtype {code!r} is not one of {', '.join(CODES)}")
    return CODES[code]


def code_of(dtype: np.dtype) -> str:
    """Return the code of a numpy dtype, whatever its byte order.

    Raises:
        ValueError: If checkpoints do not hold this dtype.
    """
    return code_of_name(dtype.name)


def code_of_name(name: str) -> str:
    """Return the code of a dtype by the name that numpy and ml_dtypes give it.

    Raises:
        ValueError: If checkpoints do not hold this dtype.
    """
    if name not in _CODE_BY_NAME:
        raise ValueError(f"dtype {name!r} is not one of {', '.join(_CODE_BY_NAME)}")
    return _CODE_BY_NAME[name]


def item_size(code: str) -> int:
    """Return the bytes that one element takes."""
    return numpy_dtype(code).itemsize
