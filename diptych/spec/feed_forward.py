"""What the feed-forward components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks import check_choice, check_positive
from .config import Config, Leaves, linear_leaves, under

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "tanh")


@dataclass(frozen=True, kw_only=True)
class FeedForwardConfig(Config):
    """Two linear maps with an activation between them.

    Attributes:
        d_model: Width of the input and the output.
        d_ff: Hidden width.
        activation: One of ``ACTIVATIONS``; "gelu" is the exact form.
    """

    component: ClassVar[str] = "FeedForward"
    d_model: int
    d_ff: int = 2048
    activation: str = "relu"

    def __post_init__(self):
        check_positive(d_model=self.d_model, d_ff=self.d_ff)
        check_choice(ACTIVATIONS, activation=self.activation)

    def leaves(self) -> Leaves:
        up = linear_leaves(self.d_model, self.d_ff)
        return under("up_proj", up) | under("down_proj", linear_leaves(self.d_ff, self.d_model))
