"""The name of a dtype, as the checks of ``diptych.spec`` take it."""

from jax import Array


def dtype_name(x: Array) -> str:
    """Return for example 'float32' or 'bool'."""
    return str(x.dtype)
