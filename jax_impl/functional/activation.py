"""Activations, each by the framework's own fused function."""

import jax
from jax import Array
from jax import numpy as jnp


def relu(x: Array) -> Array:
    """Return ``max(x, 0)``, in the shape and dtype of ``x``."""
    return jax.nn.relu(x)


def gelu(x: Array) -> Array:
    """Return ``x * Phi(x)``, in the shape and dtype of ``x``.

    Phi is the exact normal distribution function (Hendrycks, Gimpel 2016).
    """
    return jax.nn.gelu(x, approximate=False)


def gelu_tanh(x: Array) -> Array:
    """Return ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``, which is not ``gelu``.

    In the shape and dtype of ``x`` (Hendrycks, Gimpel 2016).
    """
    return jax.nn.gelu(x, approximate=True)


def silu(x: Array) -> Array:
    """Return ``x / (1 + exp(-x))``, in the shape and dtype of ``x``."""
    return jax.nn.silu(x)


def quick_gelu(x: Array) -> Array:
    """Return ``x / (1 + exp(-1.702 x))`` (Hendrycks, Gimpel 2016), in shape and dtype of ``x``."""
    return x * jax.nn.sigmoid(1.702 * x)


def tanh(x: Array) -> Array:
    """Return the hyperbolic tangent, in the shape and dtype of ``x``."""
    return jnp.tanh(x)


def activate(x: Array, activation: str) -> Array:
    """Apply the activation of a name that ``diptych.spec`` lists.

    Args:
        x: Input of any shape.
        activation: One of "relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh".

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return _ACTIVATIONS[activation](x)


def activate_gated(gate: Array, up: Array, activation: str) -> Array:
    """Return ``activation(gate) * up`` (Shazeer 2020), or gpt-oss's clamped form of it.

    "clamped_swiglu" is ``g * sigmoid(1.702 g) * (u + 1)`` with ``g = min(gate, 7)`` and u = up
    clipped to [-7, 7] (OpenAI 2025).

    Args:
        gate: Input of any shape.
        up: Input of that shape.
        activation: One of those of ``activate``, or "clamped_swiglu".

    Returns:
        Output in the shape and dtype of ``gate``.
    """
    if activation == "clamped_swiglu":
        return quick_gelu(jnp.minimum(gate, 7.0)) * (jnp.clip(up, -7.0, 7.0) + 1.0)
    return activate(gate, activation) * up


_ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "quick_gelu": quick_gelu,
    "silu": silu,
    "tanh": tanh,
}
