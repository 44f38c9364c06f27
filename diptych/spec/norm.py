"""What the normalisation components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks import check_above_zero, check_positive
from .config import Config, Leaf, Leaves


@dataclass(frozen=True, kw_only=True)
class LayerNormConfig(Config):
    """Layer normalisation over the last axis.

    Attributes:
        d_model: Width of the last axis.
        eps: Added to the variance.
    """

    component: ClassVar[str] = "LayerNorm"
    d_model: int
    eps: float = 1e-5

    def __post_init__(self):
        check_positive(d_model=self.d_model)
        check_above_zero(eps=self.eps)

    def leaves(self) -> Leaves:
        return {name: Leaf((self.d_model,), "norm") for name in ("weight", "bias")}
