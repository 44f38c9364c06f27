"""Mixture of experts.

D model width   F hidden width   E experts
"""

import jax
from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import MixtureOfExpertsConfig, RouterConfig
from diptych.spec.checks.sizes import check_one_dtype, check_width

from . import functional
from .feed_forward import GatedFeedForward
from .linear import linear
from .module import Module, config_of


class MixtureOfExperts(Module):
    """Gated feed-forward networks of which each token visits the ``top_k`` best; none is dropped.

    ``sum over chosen e of weight_e(x) expert_e(x)`` (Shazeer et al. 2017; Jiang et al. 2024), plus
    the network that every token visits, where there is one (Dai et al. 2024).

    Args:
        d_model: Width D of the input and the output.
        d_ff: Hidden width F of one expert.
        num_experts: Number E of experts.
        top_k: Number of experts that a token visits.
        activation: Of the gates, as in ``GatedFeedForward``.
        bias: Whether the experts' linear maps have a bias.
        router: How experts are chosen and weighed.
        shared_d_ff: Hidden width of the network that every token visits; None means there is none.
        shared_gate: Whether its output is multiplied by the sigmoid of a linear map of the token.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size, a name or their combination is refused.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        num_experts: int,
        top_k: int,
        *,
        activation: str = "silu",
        bias: bool = False,
        router: RouterConfig = RouterConfig(),
        shared_d_ff: int | None = None,
        shared_gate: bool = False,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config = config_of(MixtureOfExpertsConfig, locals())
        self.router_proj = linear(d_model, num_experts, bias=router.bias, rngs=rngs)
        if router.choice_bias:
            self.router_choice_param = nnx.Param(jnp.zeros(num_experts, jnp.float32))
        self.experts = _Experts(config, rngs=rngs)
        if config.shared is not None:
            self.shared = GatedFeedForward.from_config(config.shared, rngs=rngs)
        if shared_gate:
            self.shared_gate_proj = linear(d_model, 1, bias=False, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        """Send every token to its experts.

        Args:
            x: Input (..., D).

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
        """
        config = self.config
        check_width(x.shape, config.d_model)
        choice_bias = self.router_choice_param[...] if config.router.choice_bias else None
        weights = functional.route(
            self.router_proj(x), top_k=config.top_k, router=config.router, choice_bias=choice_bias
        )
        output = self.experts(x, weights)
        if config.shared is None:
            return output
        shared = self.shared(x)
        if config.shared_gate:
            shared = shared * jax.nn.sigmoid(self.shared_gate_proj(x))
        return output + shared


class _Experts(Module):
    """The experts' kernels, one bank (E, in, out) for each of the three maps."""

    def __init__(self, config: MixtureOfExpertsConfig, rngs: nnx.Rngs):
        super().__init__()
        self.config = config
        D, F, E = config.d_model, config.d_ff, config.num_experts
        self.gate_param = _bank(E, D, F, rngs=rngs)
        self.up_param = _bank(E, D, F, rngs=rngs)
        self.down_param = _bank(E, F, D, rngs=rngs)
        if config.bias:
            self.gate_bias_param = _bank(E, D, F, bias=True, rngs=rngs)
            self.up_bias_param = _bank(E, D, F, bias=True, rngs=rngs)
            self.down_bias_param = _bank(E, F, D, bias=True, rngs=rngs)

    def __call__(self, x: Array, weights: Array) -> Array:
        # An einsum would promote without a word; a linear layer would refuse.
        check_one_dtype(x.dtype.name, self.gate_param[...].dtype.name)
        biases = {}
        if self.config.bias:
            biases = {
                "gate_bias": self.gate_bias_param[...],
                "up_bias": self.up_bias_param[...],
                "down_bias": self.down_bias_param[...],
            }
        return functional.mix_experts(
            x,
            weights,
            self.gate_param[...],
            self.up_param[...],
            self.down_param[...],
            activation=self.config.activation,
            **biases,
        )


def _bank(
    number: int, width_in: int, width_out: int, *, bias: bool = False, rngs: nnx.Rngs
) -> nnx.Param:
    """Return kernels, or biases, drawn from uniform(-b, b) with ``b = 1 / sqrt(width_in)``."""
    shape = (number, width_out) if bias else (number, width_in, width_out)
    bound = width_in**-0.5
    return nnx.Param(jax.random.uniform(rngs.params(), shape, jnp.float32, -bound, bound))
