"""Reading one position of a sequence, and comparing vectors."""

import functools

from jax import Array
from jax import numpy as jnp

from diptych.spec.checks.sizes import check_floating, check_sequence

from ._dtype import dtype_name
from ._precision import matmul_precision


def first_highest(x: Array, scores: Array) -> Array:
    """Return the vector at the first of the highest scores, such as an end token's.

    Args:
        x: Vectors (..., T, D).
        scores: Integer or boolean (..., T).

    Returns:
        Vectors (..., D), in the dtype of ``x``.
    """
    place = scores.astype(jnp.int32).argmax(-1)  # (...)
    return jnp.take_along_axis(x, place[..., None, None], -2)[..., 0, :]


def normalize(x: Array) -> Array:
    """Scale every vector to length 1: ``x / sqrt(sum(x^2))``, in float32 at least.

    Args:
        x: Vectors (..., D).

    Returns:
        Vectors (..., D), in the dtype of ``x``; NaN where a vector is 0.

    Raises:
        TypeError: If ``x`` is not floating.
    """
    check_floating(x=dtype_name(x))
    wide = x.astype(jnp.promote_types(x.dtype, jnp.float32))
    return (wide / jnp.sqrt(jnp.square(wide).sum(-1, keepdims=True))).astype(x.dtype)


def similarity(x: Array, y: Array, log_scale: Array, bias: Array | None = None) -> Array:
    """Compare every vector with every other: ``exp(log_scale) * x . y + bias``.

    Radford et al. 2021, figure 3; the bias is of Zhai et al. 2023. In float32 at least, rounded
    once.

    Args:
        x: Vectors (..., I, E), of length 1.
        y: Vectors (..., J, E), of length 1.
        log_scale: Logarithm of the factor, ().
        bias: Summand, (), or None.

    Returns:
        Logits (..., I, J), in the dtype of ``x``.

    Raises:
        ValueError: If a shape does not fit.
        TypeError: If ``x`` or ``y`` is not floating.
    """
    check_floating(x=dtype_name(x), y=dtype_name(y))
    check_sequence(x.shape, y.shape[-1] if y.ndim else 0)
    check_sequence(y.shape, x.shape[-1])
    dtype = functools.reduce(jnp.promote_types, [x.dtype, y.dtype], jnp.float32)
    products = jnp.einsum(
        "...ie,...je->...ij", x.astype(dtype), y.astype(dtype), precision=matmul_precision()
    )
    logits = products * jnp.exp(log_scale.astype(dtype))  # (..., I, J)
    return (logits if bias is None else logits + bias.astype(dtype)).astype(x.dtype)
