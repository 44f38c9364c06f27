"""The position-wise feed-forward networks."""

from flax import nnx
from jax import Array

from diptych.spec import FeedForwardConfig, GatedFeedForwardConfig
from diptych.spec.checks.sizes import check_width

from . import functional
from .linear import linear
from .module import Module, config_of


class FeedForward(Module):
    """Two linear maps with an activation between them: ``down(activation(up(x)))``.

    Vaswani et al. 2017, section 3.3.

    Args:
        d_model: Width D of the input and the output.
        d_ff: Hidden width.
        activation: "relu", "gelu" (exact), "gelu_tanh", "quick_gelu", "silu" or "tanh".
        bias: Whether the linear maps have a bias.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size is below 1 or the activation is unknown.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int = 2048,
        *,
        activation: str = "relu",
        bias: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(FeedForwardConfig, locals())
        self.up_proj = linear(d_model, d_ff, bias=bias, rngs=rngs)
        self.down_proj = linear(d_ff, d_model, bias=bias, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        """Apply the network to every position.

        Args:
            x: Input (..., D).

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(x.shape, self.config.d_model)
        return self.down_proj(functional.activate(self.up_proj(x), self.config.activation))


class GatedFeedForward(Module):
    """A feed-forward network with gated hidden units: ``down(activation(gate(x)) * up(x))``.

    Shazeer 2020; with "silu" it is SwiGLU, with a GELU it is GeGLU.

    Args:
        d_model: Width D of the input and the output.
        d_ff: Hidden width.
        activation: Of the gate: that of ``FeedForward``, or "clamped_swiglu" (gpt-oss).
        bias: Whether the linear maps have a bias.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size is below 1 or the activation is unknown.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int = 2048,
        *,
        activation: str = "silu",
        bias: bool = False,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(GatedFeedForwardConfig, locals())
        self.gate_proj = linear(d_model, d_ff, bias=bias, rngs=rngs)
        self.up_proj = linear(d_model, d_ff, bias=bias, rngs=rngs)
        self.down_proj = linear(d_ff, d_model, bias=bias, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        """Apply the network to every position.

        Args:
            x: Input (..., D).

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(x.shape, self.config.d_model)
        gate, up = self.gate_proj(x), self.up_proj(x)
        return self.down_proj(functional.activate_gated(gate, up, self.config.activation))
