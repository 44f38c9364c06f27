"""Drawing from the framework's generator."""

import torch
from torch import Tensor


def draw_kept(x: Tensor, rate: float) -> Tensor:
    """Return an array of the shape of ``x`` that is true with probability ``1 - rate``."""
    # In 16 bits the numbers would come in steps too coarse for a rate.
    return torch.rand_like(x, dtype=torch.float32) >= rate
