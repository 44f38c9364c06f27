"""Whether the numbers of an array can be looked at, and looking at them."""

from typing import Any

import torch
from torch import Tensor
from torch._subclasses import FakeTensor


def is_concrete(x: Tensor) -> bool:
    """Return whether a tensor holds numbers: not while compiling, nor under vmap."""
    if torch.compiler.is_compiling():
        return False
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(x):  # torch.func.grad wraps, and hides nothing
        if functorch.is_batchedtensor(x):
            return False
        x = functorch.get_unwrapped(x)
    return not (x.is_meta or isinstance(x, FakeTensor))


def extremes(x: Tensor) -> tuple[Any, Any]:
    """Return the smallest and the largest number of an array that is not empty."""
    smallest, largest = torch.stack(x.aminmax()).tolist()
    return smallest, largest
