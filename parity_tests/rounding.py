"""How far random rounding errors of float64 move a result: a Monte-Carlo witness for deep models.

Every elementary operation that plain, decomposed torch code makes, forward and backward, gets a
random error: elementwise ``u r``, relative to the result; a sum of n terms
``u r sqrt(n sum of squared terms)``; ``u = 2**-52``, r uniform in [-1, 1], drawn per value.
What moves, chooses or compares values is exact. Fused operations are not plain and are refused.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

UNIT = 2.0**-52

Tensors = dict[str, torch.Tensor]

ELEMENTWISE = {"add", "div", "erf", "exp", "mul", "pow", "sqrt", "sub", "tanh", "tanh_backward"}
SUMS = {"mean", "sum"}
PRODUCTS = {"bmm", "mm"}
VIEWS = {
    "_unsafe_view",
    "alias",
    "detach",
    "expand",
    "permute",
    "t",
    "transpose",
    "unsqueeze",
    "view",
}
COPIES = {"clone", "index", "lift_fresh", "select", "select_backward", "slice", "slice_backward"}
CHOICES = {"abs", "amax", "eq", "gt", "maximum", "neg", "where"}
CONSTANTS = {"full_like", "new_zeros", "ones_like", "scalar_tensor", "zeros", "zeros_like"}
EXACT = VIEWS | COPIES | CHOICES | CONSTANTS


class RandomRounding(TorchDispatchMode):
    """Adds a random rounding error to every float64 operation inside the ``with`` block.

    Args:
        seed: Of the errors.

    Raises:
        NotImplementedError: At an operation that is neither known as exact nor as elementary.
    """

    def __init__(self, seed: int):
        super().__init__()
        self.generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        output = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if name in EXACT:
            return output
        if name in ELEMENTWISE:
            spread = torch.where(output.isfinite(), output.abs(), 0.0)
        elif name in PRODUCTS:
            left, right = args[:2]
            spread = (left.shape[-1] * (left**2 @ right**2)).sqrt()
        elif name in SUMS:
            spread = _spread_of_sum(args, output, is_mean=name == "mean")
        else:
            raise NotImplementedError(f"{name} is not plain code: decompose it")
        return output + UNIT * self._draw(output.shape) * spread

    def _draw(self, shape: torch.Size) -> torch.Tensor:
        return 2 * torch.rand(shape, generator=self.generator, dtype=torch.float64) - 1


def rounding_noise(function: Callable[[], Tensors], seeds: int = 3) -> dict[str, float]:
    """Return the largest change of every result over runs with random rounding errors.

    Args:
        function: Plain float64 torch code; returns outputs and, if it likes, gradients by name.
        seeds: Number of runs.
    """
    exact = {name: tensor.detach() for name, tensor in function().items()}
    noise = dict.fromkeys(exact, 0.0)
    for seed in range(seeds):
        with RandomRounding(seed):
            moved = function()
        for name, tensor in moved.items():
            change = np.abs((tensor.detach() - exact[name]).numpy()).max(initial=0.0)
            assert np.isfinite(change), name
            noise[name] = max(noise[name], float(change))
    return noise


def _spread_of_sum(args: Any, output: torch.Tensor, *, is_mean: bool) -> torch.Tensor:
    terms = args[0]
    count = terms.numel() // max(output.numel(), 1)
    if len(args) > 1 and args[1] is not None and len(args[1]):
        keepdim = bool(args[2]) if len(args) > 2 else False
        squares = (terms**2).sum(dim=args[1], keepdim=keepdim)
    else:
        squares = (terms**2).sum()
    return (count * squares).sqrt() / (count if is_mean else 1)
