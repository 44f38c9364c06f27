"""Whether the numbers of an array can be looked at, and looking at them."""

from typing import Any

import jax
from jax import Array
from jax.core import Tracer


def is_concrete(x: Array) -> bool:
    """Return whether an array holds numbers: not while tracing."""
    return not isinstance(x, Tracer)


def on_host(x: Array) -> Any:
    """Return the numbers; under jit, a jnp function of a concrete array would be traced."""
    return jax.device_get(x)


def extremes(x: Array) -> tuple[Any, Any]:
    """Return the smallest and the largest number of an array that is not empty."""
    numbers = on_host(x)
    return numbers.min().item(), numbers.max().item()
