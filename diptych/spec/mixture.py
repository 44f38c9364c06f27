"""What a mixture of experts is."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import (
    check_above_zero,
    check_boolean,
    check_choice,
    check_divides,
    check_kind,
    check_positive,
)
from .config import Config, Leaf, Leaves, linear_leaves, under
from .feed_forward import GATED_ACTIVATIONS, GatedFeedForwardConfig

SCORINGS = ("softmax", "softmax_of_top", "sigmoid")


@dataclass(frozen=True, kw_only=True)
class RouterConfig(Config):
    """How a token chooses its experts and weighs them.

    Attributes:
        scoring: "softmax" over all experts, "softmax_of_top" over the chosen ones, or "sigmoid".
        normalize: Whether the chosen scores are divided by their sum.
        scale: Factor on the weights.
        bias: Whether the router's linear map has a bias.
        choice_bias: Whether a parameter is added to the scores where experts are chosen, not where
            they are weighed.
        num_groups: Number of equal groups of experts.
        top_groups: Number of groups, by the sum of their two best scores, that are chosen from.

    Raises:
        ValueError: If a name or number is refused.
    """

    scoring: str = "softmax"
    normalize: bool = False
    scale: float = 1.0
    bias: bool = False
    choice_bias: bool = False
    num_groups: int = 1
    top_groups: int = 1

    def __post_init__(self):
        check_boolean(normalize=self.normalize, bias=self.bias, choice_bias=self.choice_bias)
        check_choice(SCORINGS, scoring=self.scoring)
        check_above_zero(scale=self.scale)
        check_positive(num_groups=self.num_groups, top_groups=self.top_groups)
        if self.top_groups > self.num_groups:
            raise ValueError(
                f"top_groups={self.top_groups} must not exceed num_groups={self.num_groups}"
            )


@dataclass(frozen=True, kw_only=True)
class MixtureOfExpertsConfig(Config):
    """Gated feed-forward networks of which each token visits a few.

    Attributes:
        d_model: Width of the input and the output.
        d_ff: Hidden width of one expert.
        num_experts: Number of experts.
        top_k: Number of experts that a token visits.
        activation: Of the gates, one of ``GATED_ACTIVATIONS``.
        bias: Whether the experts' linear maps have a bias.
        router: How experts are chosen and weighed.
        shared_d_ff: Hidden width of a network that every token visits; None means there is none.
        shared_gate: Whether that network's output is multiplied by the sigmoid of a linear map.

    Raises:
        ValueError: If a size, a name or their combination is refused.
    """

    component: ClassVar[str] = "MixtureOfExperts"
    d_model: int
    d_ff: int
    num_experts: int
    top_k: int
    activation: str = "silu"
    bias: bool = False
    router: RouterConfig = RouterConfig()
    shared_d_ff: int | None = None
    shared_gate: bool = False

    def __post_init__(self):
        check_boolean(bias=self.bias, shared_gate=self.shared_gate)
        check_positive(
            d_model=self.d_model,
            d_ff=self.d_ff,
            num_experts=self.num_experts,
            top_k=self.top_k,
        )
        check_choice(GATED_ACTIVATIONS, activation=self.activation)
        check_kind(RouterConfig, router=self.router)
        check_divides(num_groups=self.router.num_groups, num_experts=self.num_experts)
        candidates = self.num_experts // self.router.num_groups * self.router.top_groups
        if self.top_k > candidates:
            raise ValueError(
                f"top_k={self.top_k} must not exceed the {candidates} experts to choose from"
            )
        if self.router.num_groups > 1 and self.num_experts // self.router.num_groups < 2:
            raise ValueError(
                f"num_groups={self.router.num_groups} of num_experts={self.num_experts}: a group "
                "needs two experts"
            )
        if self.shared_d_ff is not None:
            check_positive(shared_d_ff=self.shared_d_ff)
        elif self.shared_gate:
            raise ValueError("shared_gate=True needs a shared_d_ff")

    @property
    def shared(self) -> GatedFeedForwardConfig | None:
        """Return the config of the network that every token visits."""
        if self.shared_d_ff is None:
            return None
        return GatedFeedForwardConfig(
            d_model=self.d_model, d_ff=self.shared_d_ff, activation=self.activation, bias=self.bias
        )

    def leaves(self) -> Leaves:
        D, F, E = self.d_model, self.d_ff, self.num_experts
        leaves = under("router_proj", linear_leaves(D, E, bias=self.router.bias))
        if self.router.choice_bias:
            leaves["router_choice_param"] = Leaf((E,), "param")
        shapes: dict[str, tuple[int, ...]] = {
            "gate_param": (E, D, F),
            "up_param": (E, D, F),
            "down_param": (E, F, D),
        }
        if self.bias:
            shapes |= {
                "gate_bias_param": (E, F),
                "up_bias_param": (E, F),
                "down_bias_param": (E, D),
            }
        leaves |= under("experts", {name: Leaf(shape, "param") for name, shape in shapes.items()})
        if self.shared is not None:
            leaves |= under("shared", self.shared.leaves())
        if self.shared_gate:
            leaves |= under("shared_gate_proj", linear_leaves(D, 1, bias=False))
        return leaves
