"""What the feed-forward components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_boolean, check_choice, check_positive
from .config import Config, Leaves, linear_leaves, under

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "quick_gelu", "silu", "tanh")
GATED_ACTIVATIONS = (*ACTIVATIONS, "clamped_swiglu")


@dataclass(frozen=True, kw_only=True)
class FeedForwardConfig(Config):
    """Two linear maps with an activation between them.

    Attributes:
        d_model: Width of the input and the output.
        d_ff: Hidden width.
        activation: One of ``ACTIVATIONS``; "gelu" is the exact form.
        bias: Whether the linear maps have a bias.
    """

    component: ClassVar[str] = "FeedForward"
    d_model: int
    d_ff: int = 2048
    activation: str = "relu"
    bias: bool = True

    def __post_init__(self):
        check_boolean(bias=self.bias)
        check_positive(d_model=self.d_model, d_ff=self.d_ff)
        check_choice(ACTIVATIONS, activation=self.activation)

    def leaves(self) -> Leaves:
        up = linear_leaves(self.d_model, self.d_ff, bias=self.bias)
        down = linear_leaves(self.d_ff, self.d_model, bias=self.bias)
        return under("up_proj", up) | under("down_proj", down)


@dataclass(frozen=True, kw_only=True)
class GatedFeedForwardConfig(Config):
    """A feed-forward network whose hidden units are gated.

    Attributes:
        d_model: Width of the input and the output.
        d_ff: Hidden width.
        activation: Of the gate, one of ``GATED_ACTIVATIONS``.
        bias: Whether the linear maps have a bias.
    """

    component: ClassVar[str] = "GatedFeedForward"
    d_model: int
    d_ff: int = 2048
    activation: str = "silu"
    bias: bool = False

    def __post_init__(self):
        check_boolean(bias=self.bias)
        check_positive(d_model=self.d_model, d_ff=self.d_ff)
        check_choice(GATED_ACTIVATIONS, activation=self.activation)

    def leaves(self) -> Leaves:
        up = linear_leaves(self.d_model, self.d_ff, bias=self.bias)
        down = linear_leaves(self.d_ff, self.d_model, bias=self.bias)
        return under("gate_proj", up) | under("up_proj", up) | under("down_proj", down)
