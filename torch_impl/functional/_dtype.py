"""The name of a dtype, as the checks of ``diptych.spec`` take it."""

from torch import Tensor


def dtype_name(x: Tensor) -> str:
    """Return for example 'float32' or 'bool'."""
    return str(x.dtype).removeprefix("torch.")
