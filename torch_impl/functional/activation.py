"""Activations, each by the framework's own fused function."""

import torch
from torch import Tensor
from torch.nn import functional as nnf


def relu(x: Tensor) -> Tensor:
    """Return ``max(x, 0)``, in the shape and dtype of ``x``."""
    return nnf.relu(x)


def gelu(x: Tensor) -> Tensor:
    """Return ``x * Phi(x)``, in the shape and dtype of ``x``.

    Phi is the exact normal distribution function (Hendrycks, Gimpel 2016).
    """
    return nnf.gelu(x, approximate="none")


def gelu_tanh(x: Tensor) -> Tensor:
    """Return ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``, which is not ``gelu``.

    In the shape and dtype of ``x`` (Hendrycks, Gimpel 2016).
    """
    return nnf.gelu(x, approximate="tanh")


def silu(x: Tensor) -> Tensor:
    """Return ``x / (1 + exp(-x))``, in the shape and dtype of ``x``."""
    return nnf.silu(x)


def quick_gelu(x: Tensor) -> Tensor:
    """Return ``x / (1 + exp(-1.702 x))`` (Hendrycks, Gimpel 2016), in shape and dtype of ``x``."""
    return x * torch.sigmoid(1.702 * x)


def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent, in the shape and dtype of ``x``."""
    return torch.tanh(x)


def activate(x: Tensor, activation: str) -> Tensor:
    """Apply the activation of a name that ``diptych.spec`` lists.

    Args:
        x: Input of any shape.
        activation: One of "relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh".

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return _ACTIVATIONS[activation](x)


def activate_gated(gate: Tensor, up: Tensor, activation: str) -> Tensor:
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
        return quick_gelu(gate.clamp(max=7.0)) * (up.clamp(-7.0, 7.0) + 1.0)
    return activate(gate, activation) * up


_ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "quick_gelu": quick_gelu,
    "silu": silu,
    "tanh": tanh,
}
