"""Normalisation over the last axis."""

import functools

from jax import Array, lax
from jax import numpy as jnp

from diptych.spec.checks.sizes import check_floating, check_width

from ._dtype import dtype_name


def layer_norm(x: Array, weight: Array, bias: Array | None, *, eps: float) -> Array:
    """Shift and scale every row to mean 0 and variance 1, then apply weight and bias.

    ``(x - mean) / sqrt(variance + eps) * weight + bias`` (Ba et al. 2016), the variance being the
    mean of the squared deviations. Statistics are computed in float32 at least.

    Args:
        x: Input (..., D).
        weight: Factor (D,), of any floating dtype.
        bias: Summand (D,), of any floating dtype, or None.
        eps: Added to the variance.

    Returns:
        Output (..., D), in the dtype of ``x``.

    Raises:
        ValueError: If the last axis of ``x`` is not that of ``weight``.
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    check_width(x.shape, weight.shape[0])
    dtypes = [x.dtype, weight.dtype] if bias is None else [x.dtype, weight.dtype, bias.dtype]
    dtype = functools.reduce(jnp.promote_types, dtypes, jnp.float32)
    # In two passes: E[x^2] - E[x]^2 cancels where the mean is large beside the spread.
    centred = x.astype(dtype) - jnp.mean(x, -1, dtype=dtype, keepdims=True)  # (..., D)
    variance = jnp.mean(jnp.square(centred), -1, keepdims=True)  # (..., 1)
    normalised = centred * lax.rsqrt(variance + eps) * weight.astype(dtype)
    return (normalised if bias is None else normalised + bias.astype(dtype)).astype(x.dtype)


def rms_norm(x: Array, weight: Array, *, eps: float, unit_offset: bool = False) -> Array:
    """Scale every row to a mean square of 1, then apply the weight.

    ``x / sqrt(mean(x^2) + eps) * weight`` (Zhang, Sennrich 2019); with a unit offset the factor is
    ``1 + weight``. All is computed in float32 at least, and rounded once.

    Args:
        x: Input (..., D).
        weight: Factor (D,), of any floating dtype.
        eps: Added to the mean square.
        unit_offset: Whether 1 is added to the weight.

    Returns:
        Output (..., D), in the dtype of ``x``.

    Raises:
        ValueError: If the last axis of ``x`` is not that of ``weight``.
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    check_width(x.shape, weight.shape[0])
    dtype = functools.reduce(jnp.promote_types, [x.dtype, weight.dtype], jnp.float32)
    wide, factor = x.astype(dtype), weight.astype(dtype)
    factor = 1.0 + factor if unit_offset else factor
    scale = lax.rsqrt(jnp.mean(jnp.square(wide), -1, keepdims=True) + eps)  # (..., 1)
    return (wide * scale * factor).astype(x.dtype)
