"""Layer normalisation."""

import torch
from torch import Tensor, nn

from diptych.spec import LayerNormConfig

from . import functional
from .module import Module


class LayerNorm(Module):
    """Layer normalisation over the last axis, with a weight of 1 and a bias of 0 at first.

    Args:
        d_model: Width D of the last axis.
        eps: Added to the variance.

    Raises:
        ValueError: If the width is below 1 or eps is not above 0.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5):
        super().__init__()
        self.config = LayerNormConfig(d_model=d_model, eps=eps)
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Tensor) -> Tensor:
        """Normalise every row; statistics are computed in float32 at least.

        Args:
            x: Input (..., D) of any floating dtype.

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
            TypeError: If ``x`` is not floating.
        """
        return functional.layer_norm(x, self.weight, self.bias, eps=self.config.eps)
