"""What the formulas of the components share, in numpy float64."""

from typing import Any

import numpy as np

from parity_tests.attention.oracle import Array

Tensors = dict[str, Array]


def under(prefix: str, tensors: Tensors) -> Tensors:
    """Return the tensors of a part, by their names in it."""
    start = f"{prefix}."
    return {name[len(start) :]: t for name, t in tensors.items() if name.startswith(start)}


def linear(tensors: Tensors, name: str, x: Array) -> Array:
    """``x W^T + b``, b where there is one."""
    return x @ tensors[f"{name}.weight"].T + tensors.get(f"{name}.bias", 0.0)


def logistic(x: Array) -> Array:
    """``1 / (1 + e^-x)``."""
    return 1.0 / (1.0 + np.exp(-x))


def convolve(tensors: Tensors, name: str, x: Array, *, stride: Any, padding: int) -> Array:
    """Cross-correlate (..., channels, positions..) with a kernel (O, I, K..), sum by sum."""
    kernel = tensors[f"{name}.weight"]
    rank = kernel.ndim - 2
    x = np.pad(x, [(0, 0)] * (x.ndim - rank) + [(padding, padding)] * rank)
    steps = [(n - k) // stride + 1 for n, k in zip(x.shape[-rank:], kernel.shape[2:], strict=True)]
    found = np.zeros((*x.shape[: -rank - 1], len(kernel), *steps))
    for place in np.ndindex(*kernel.shape[2:]):
        seen = x[(..., *(slice(p, None, stride) for p in place))]
        seen = seen[(..., *(slice(n) for n in steps))]
        factor = kernel[(..., *place)]
        found += np.moveaxis(np.tensordot(factor, seen, (1, x.ndim - rank - 1)), 0, -rank - 1)
    bias = tensors.get(f"{name}.bias", np.zeros(len(kernel)))
    return found + bias.reshape(-1, *[1] * rank)
