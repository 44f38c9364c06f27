"""Layer and root-mean-square normalisation."""

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import LayerNormConfig, NormConfig, RMSNormConfig

from . import functional
from .module import Module, config_of


class LayerNorm(Module):
    """Layer normalisation over the last axis, with a weight of 1 and a bias of 0 at first.

    Ba et al. 2016.

    Args:
        d_model: Width D of the last axis.
        eps: Added to the variance.
        bias: Whether a bias is added.
        rngs: Not drawn from; every module with parameters takes it.

    Raises:
        ValueError: If the width is below 1 or eps is not above 0.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, bias: bool = True, rngs: nnx.Rngs):
        super().__init__()
        self.config = config_of(LayerNormConfig, locals())
        self.weight = nnx.Param(jnp.ones(d_model, jnp.float32))
        if bias:
            self.bias = nnx.Param(jnp.zeros(d_model, jnp.float32))

    def __call__(self, x: Array) -> Array:
        """Normalise every row; statistics are computed in float32 at least.

        Args:
            x: Input (..., D) of any floating dtype.

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
            TypeError: If ``x`` is not floating.
        """
        bias = self.bias[...] if self.config.bias else None
        return functional.layer_norm(x, self.weight[...], bias, eps=self.config.eps)


class RMSNorm(Module):
    """Root-mean-square normalisation over the last axis (Zhang, Sennrich 2019).

    Rows are multiplied by the weight, 1 at first; with a unit offset by 1 + weight, 0 at first.

    Args:
        d_model: Width D of the last axis.
        eps: Added to the mean square.
        unit_offset: Whether 1 is added to the weight (Gemma).
        rngs: Not drawn from; every module with parameters takes it.

    Raises:
        ValueError: If the width is below 1 or eps is not above 0.
    """

    def __init__(
        self, d_model: int, *, eps: float = 1e-6, unit_offset: bool = False, rngs: nnx.Rngs
    ):
        super().__init__()
        self.config = config_of(RMSNormConfig, locals())
        start = 0.0 if unit_offset else 1.0
        self.weight = nnx.Param(jnp.full((d_model,), start, jnp.float32))

    def __call__(self, x: Array) -> Array:
        """Normalise every row; all is computed in float32 at least.

        Args:
            x: Input (..., D) of any floating dtype.

        Returns:
            Output (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If the last axis is not D.
            TypeError: If ``x`` is not floating.
        """
        config = self.config
        return functional.rms_norm(
            x, self.weight[...], eps=config.eps, unit_offset=config.unit_offset
        )


def norm(config: NormConfig, d_model: int, *, rngs: nnx.Rngs) -> LayerNorm | RMSNorm:
    """Return the norm that a config names, of a width.

    Args:
        config: Which norm.
        d_model: Width D of the last axis.
        rngs: Not drawn from; every module with parameters takes it.

    Returns:
        The module, from (..., D) to (..., D).
    """
    kind = RMSNorm if config.kind == "rms" else LayerNorm
    return kind.from_config(config.of(d_model), rngs=rngs)
