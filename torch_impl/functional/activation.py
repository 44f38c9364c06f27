"""Activations, each by the framework's own fused function."""

import torch
from torch import Tensor
from torch.nn import functional as nnf


def relu(x: Tensor) -> Tensor:
    """Return ``max(x, 0)``, in the shape and dtype of ``x``."""
    return nnf.relu(x)


def gelu(x: Tensor) -> Tensor:
    """Return ``x * Phi(x)`` with the exact normal distribution function (Hendrycks, Gimpel 2016).

    Args:
        x: Input of any shape.

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return nnf.gelu(x, approximate="none")


def gelu_tanh(x: Tensor) -> Tensor:
    """Return ``x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``, which is not ``gelu``.

    Args:
        x: Input of any shape.

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return nnf.gelu(x, approximate="tanh")


def silu(x: Tensor) -> Tensor:
    """Return ``x / (1 + exp(-x))``, in the shape and dtype of ``x``."""
    return nnf.silu(x)


def tanh(x: Tensor) -> Tensor:
    """Return the hyperbolic tangent, in the shape and dtype of ``x``."""
    return torch.tanh(x)


def activate(x: Tensor, activation: str) -> Tensor:
    """Apply the activation of a name that ``diptych.spec`` lists.

    Args:
        x: Input of any shape.
        activation: One of "relu", "gelu", "gelu_tanh", "silu", "tanh".

    Returns:
        Output in the shape and dtype of ``x``.
    """
    return _ACTIVATIONS[activation](x)


_ACTIVATIONS = {"relu": relu, "gelu": gelu, "gelu_tanh": gelu_tanh, "silu": silu, "tanh": tanh}
