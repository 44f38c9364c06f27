"""What the normalisation components are."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_above_zero, check_boolean, check_choice, check_positive
from .config import Config, Leaf, Leaves

NORMS = ("layer", "rms")


@dataclass(frozen=True, kw_only=True)
class LayerNormConfig(Config):
    """Layer normalisation over the last axis.

    Attributes:
        d_model: Width of the last axis.
        eps: Added to the variance.
        bias: Whether a bias is added.
    """

    component: ClassVar[str] = "LayerNorm"
    d_model: int
    eps: float = 1e-5
    bias: bool = True

    def __post_init__(self):
        check_boolean(bias=self.bias)
        check_positive(d_model=self.d_model)
        check_above_zero(eps=self.eps)

    def leaves(self) -> Leaves:
        names = ("weight", "bias") if self.bias else ("weight",)
        return {name: Leaf((self.d_model,), "norm") for name in names}


@dataclass(frozen=True, kw_only=True)
class RMSNormConfig(Config):
    """Root-mean-square normalisation over the last axis.

    Attributes:
        d_model: Width of the last axis.
        eps: Added to the mean of the squares.
        unit_offset: Whether rows are multiplied by 1 + weight, as Gemma's, instead of by weight.
    """

    component: ClassVar[str] = "RMSNorm"
    d_model: int
    eps: float = 1e-6
    unit_offset: bool = False

    def __post_init__(self):
        check_boolean(unit_offset=self.unit_offset)
        check_positive(d_model=self.d_model)
        check_above_zero(eps=self.eps)

    def leaves(self) -> Leaves:
        return {"weight": Leaf((self.d_model,), "norm")}


@dataclass(frozen=True, kw_only=True)
class NormConfig(Config):
    """Which norm, whatever its width: a part of the configs that hold norms.

    Attributes:
        kind: "layer" or "rms".
        eps: Added to the variance or mean square; None means 1e-5 for "layer", 1e-6 for "rms".
        bias: Whether a layer norm has a bias; an RMS norm has none.
        unit_offset: Whether an RMS norm multiplies by 1 + weight.

    Raises:
        ValueError: If the kind is unknown, eps is refused, or a layer norm has a unit offset.
    """

    kind: str = "layer"
    eps: float | None = None
    bias: bool = True
    unit_offset: bool = False

    def __post_init__(self):
        check_boolean(bias=self.bias, unit_offset=self.unit_offset)
        check_choice(NORMS, kind=self.kind)
        if self.unit_offset and self.kind == "layer":
            raise ValueError("unit_offset=True is of kind='rms' only")
        self.of(1)

    def of(self, d_model: int) -> LayerNormConfig | RMSNormConfig:
        """Return the config of this norm at a width."""
        eps = {} if self.eps is None else {"eps": self.eps}
        if self.kind == "rms":
            return RMSNormConfig(d_model=d_model, unit_offset=self.unit_offset, **eps)
        return LayerNormConfig(d_model=d_model, bias=self.bias, **eps)
