"""How far rounding errors of a given size move a result: a Monte-Carlo witness for deep models.

Every elementary operation that torch makes in float64, forward and backward, gets a random error:
elementwise ``u r``, relative to the result; a sum of n terms ``u r sqrt(n sum of squared terms)``;
r uniform in [-1, 1], drawn per value. Operations of several steps, such as the softmax, get the
errors of their steps. What moves, chooses or compares values is exact.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

FLOAT64 = 2.0**-52
"""Spacing of float64 at 1, twice its largest rounding error."""
FLOAT32 = 2.0**-23
"""The same of float32."""

VIEWS = {
    "_unsafe_view",
    "alias",
    "as_strided",
    "detach",
    "diagonal",
    "expand",
    "permute",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unfold",
    "unsqueeze",
    "view",
}
COPIES = {
    "_to_copy",
    "cat",
    "clone",
    "constant_pad_nd",
    "copy",
    "embedding",
    "flip",
    "gather",
    "index",
    "index_put",
    "index_select",
    "lift_fresh",
    "masked_fill",
    "repeat",
    "roll",
    "scatter",
    "select_backward",
    "slice_backward",
    "stack",
}
CHOICES = {
    "abs",
    "amax",
    "amin",
    "clamp",
    "clamp_max",
    "clamp_min",
    "max",
    "maximum",
    "minimum",
    "neg",
    "relu",
    "sort",
    "topk",
    "where",
}
CONSTANTS = {
    "full",
    "full_like",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones",
    "ones_like",
    "scalar_tensor",
    "zeros",
    "zeros_like",
}
EXACT = VIEWS | COPIES | CHOICES | CONSTANTS


def random_rounding(seed: int, unit: float) -> AbstractContextManager[Any]:
    """Return a context in which every float64 operation of torch gets a random rounding error.

    Args:
        seed: Of the errors.
        unit: Their size.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class RandomRounding(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.generator = torch.Generator().manual_seed(seed)

        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
            output = function(*args, **(kwargs or {}))
            name = function.overloadpacket.__name__
            if name in EXACT or name.endswith("_"):
                return output
            if isinstance(output, tuple):
                return (self.moved(output[0], name, args), *output[1:])
            return self.moved(output, name, args)

        def moved(self, output: Any, name: str, args: Any) -> Any:
            if not isinstance(output, torch.Tensor) or output.dtype != torch.float64:
                return output
            draw = torch.rand(output.shape, generator=self.generator, dtype=torch.float64)
            return output + unit * (2 * draw - 1) * _SPREADS.get(name, _of_result)(output, *args)

    return RandomRounding()


def rounding_noise(
    function: Callable[[], Mapping[str, Any]], *, unit: float = FLOAT64, seeds: int = 3
) -> dict[str, float]:
    """Return the largest change of every result over runs with random rounding errors.

    Args:
        function: float64 torch code; returns tensors, outputs or gradients, by name.
        unit: Size of the errors, ``FLOAT64`` or ``FLOAT32``.
        seeds: Number of runs.
    """
    exact = {name: tensor.detach() for name, tensor in function().items()}
    noise = dict.fromkeys(exact, 0.0)
    for seed in range(seeds):
        with random_rounding(seed, unit):
            moved = function()
        for name, tensor in moved.items():
            change = np.abs((tensor.detach() - exact[name]).numpy())
            noise[name] = max(noise[name], float(change[np.isfinite(change)].max(initial=0.0)))
    return noise


def _of_result(output: Any, *args: Any) -> Any:
    return output.abs().nan_to_num(0.0, 0.0, 0.0)


def _of_sum(output: Any, terms: Any, dim: Any = None, keepdim: bool = False, *_: Any) -> Any:
    squares = (terms**2).sum(dim=dim, keepdim=keepdim) if dim else (terms**2).sum()
    return (terms.numel() // max(output.numel(), 1) * squares).sqrt()


def _of_mean(output: Any, terms: Any, *args: Any) -> Any:
    return _of_sum(output, terms, *args) / (terms.numel() // max(output.numel(), 1))


def _of_product(output: Any, left: Any, right: Any, *_: Any) -> Any:
    return (left.shape[-1] * (left**2 @ right**2)).sqrt()


def _of_product_and_sum(output: Any, added: Any, left: Any, right: Any, *_: Any) -> Any:
    return _of_product(output, left, right) + output.abs()


def _of_convolution(output: Any, x: Any, weight: Any, bias: Any, *args: Any) -> Any:
    import torch

    squares = torch.ops.aten.convolution(x**2, weight**2, None, *args)
    return (weight[0].numel() * squares).sqrt() + output.abs()


def _of_softmax(output: Any, scores: Any, dim: int, *_: Any) -> Any:
    distance = (scores.amax(dim, keepdim=True) - scores).nan_to_num(0.0, 0.0, 0.0)
    return output * (3.0 + distance)


def _of_layer_norm(output: Any, x: Any, shape: Any, weight: Any, *_: Any) -> Any:
    axes = tuple(range(-len(shape), 0))
    variance = x.var(dim=axes, keepdim=True, correction=0)
    size = (x.abs() + x.mean(dim=axes, keepdim=True).abs()) * (variance + 1e-30).rsqrt()
    return output.abs() + (size if weight is None else size * weight.abs())


def _of_argument(output: Any, x: Any, *_: Any) -> Any:
    """Return the spread of an activation that takes 1 from a function close to -1."""
    return x.abs()


_SPREADS: dict[str, Callable[..., Any]] = {
    "_softmax": _of_softmax,
    "addmm": _of_product_and_sum,
    "baddbmm": _of_product_and_sum,
    "bmm": _of_product,
    "convolution": _of_convolution,
    "gelu": _of_argument,
    "mean": _of_mean,
    "mm": _of_product,
    "native_layer_norm": _of_layer_norm,
    "sum": _of_sum,
}
