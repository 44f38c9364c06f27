"""The linear map that every projection is."""

from torch import nn


def linear(in_features: int, out_features: int, *, bias: bool = True) -> nn.Linear:
    """Return the framework's own linear layer, so that tools which look for it find it.

    Weight and bias are drawn from uniform(-b, b) with ``b = 1 / sqrt(in_features)``.

    Args:
        in_features: Width of the input.
        out_features: Width of the output.
        bias: Whether a bias is added.

    Returns:
        A layer from (..., in_features) to (..., out_features); input and parameters must have one
        floating dtype.
    """
    return nn.Linear(in_features, out_features, bias=bias)
