"""Normalisation over the last axis."""

from jax import Array, lax
from jax import numpy as jnp

from diptych.spec.checks import check_floating, check_width

from ._dtype import dtype_name


def layer_norm(x: Array, weight: Array, bias: Array, *, eps: float) -> Array:
    """Shift and scale every row to mean 0 and variance 1, then apply weight and bias.

    ``(x - mean) / sqrt(variance + eps) * weight + bias`` (Ba et al. 2016), the variance being the
    mean of the squared deviations. Statistics are computed in float32 at least.

    Args:
        x: Input (..., D).
        weight: Factor (D,), of any floating dtype.
        bias: Summand (D,), of any floating dtype.
        eps: Added to the variance.

    Returns:
        Output (..., D), in the dtype of ``x``.

    Raises:
        ValueError: If the last axis of ``x`` is not that of ``weight``.
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    check_width(x.shape, weight.shape[0])
    dtype = jnp.promote_types(jnp.promote_types(x.dtype, weight.dtype), bias.dtype)
    dtype = jnp.promote_types(dtype, jnp.float32)
    centred = x.astype(dtype) - jnp.mean(x, -1, dtype=dtype, keepdims=True)
    variance = jnp.mean(jnp.square(centred), -1, keepdims=True)
    normalised = centred * lax.rsqrt(variance + eps)
    return (normalised * weight.astype(dtype) + bias.astype(dtype)).astype(x.dtype)
