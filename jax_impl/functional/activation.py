"""Activations, each by the framework's own fused function."""

import jax
from jax import Array
from jax import numpy as jnp


def relu(x: Array) -> Array:
    """Return ``max(x, 0)``, in the shape and dtype of ``x``."""
    return jax.nn.relu(x)


def gelu(x: Array) -> Array:
    """Return ``x * Phi(x)`` with the exact normal distribution function (Hendrycks, Gimpel 2016).

    Args:
        x: Input of any shape.

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x: Array) -> Array:
    """Return ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``, which is not ``gelu``.

    Args:
        x: Input of any shape.

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return jax.nn.gelu(x, approximate=True)


def silu(x: Array) -> Array:
    """Return ``x / (1 + exp(-x))``, in the shape and dtype of ``x``."""
    return jax.nn.silu(x)


def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent, in the shape and dtype of ``x``."""
    return jnp.tanh(x)


def activate(x: Array, activation: str) -> Array:
    """Apply the activation of a name that ``diptych.spec`` lists.

    Args:
        x: Input of any shape.
        activation: One of "relu", "gelu", "gelu_tanh", "silu", "tanh".

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return _ACTIVATIONS[activation](x)


_ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, "tanh": tanh}
