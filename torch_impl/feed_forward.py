"""The position-wise feed-forward network."""

from torch import Tensor

from diptych.spec import FeedForwardConfig
from diptych.spec.checks import check_width

from . import functional
from .linear import linear
from .module import Module


class FeedForward(Module):
    """Two linear maps with an activation between them: ``down(activation(up(x)))``.

    Vaswani et al. 2017, section 3.3.

    Args:
        d_model: Width D of the input and the output.
        d_ff: Hidden width.
        activation: "relu", "gelu" (exact), "gelu_tanh", "silu" or "tanh".

    Raises:
        ValueError: If a size is below 1 or the activation is unknown.
    """

    def __init__(self, d_model: int, d_ff: int = 2048, *, activation: str = "relu"):
        super().__init__()
        self.config = FeedForwardConfig(d_model=d_model, d_ff=d_ff, activation=activation)
        self.up_proj = linear(d_model, d_ff)
        self.down_proj = linear(d_ff, d_model)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the network to every position.

        Args:
            x: Input (..., D).

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(tuple(x.shape), self.config.d_model)
        return self.down_proj(functional.activate(self.up_proj(x), self.config.activation))
