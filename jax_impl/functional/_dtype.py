"""The name of a dtype, as the checks of ``diptych.spec`` take it, and the rule of one dtype."""

from typing import Any

from jax import Array
from jax import numpy as jnp

from diptych.spec.checks.sizes import check_one_dtype


def dtype_name(x: Array) -> str:
    """Return for example 'float32' or 'bool'."""
    return str(x.dtype)


def one_dtype(arrays: Any, /, *, dtype: Any = None, inexact: bool = True) -> Any:
    """Return the arrays of a framework's layer as they are; raise TypeError if dtypes differ."""
    # Flax itself would promote without a word.
    check_one_dtype(*(array.dtype.name for array in arrays if array is not None))
    return tuple(None if array is None else jnp.asarray(array) for array in arrays)
