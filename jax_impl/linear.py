"""The linear map that every projection is."""

from typing import Any

import jax
from flax import nnx
from jax import Array, lax

from .functional._dtype import one_dtype
from .functional._precision import matmul_precision


def linear(in_features: int, out_features: int, *, bias: bool = True, rngs: nnx.Rngs) -> nnx.Linear:
    """Return the framework's own linear layer, so that tools which look for it find it.

    Weight and bias are drawn from uniform(-b, b) with ``b = 1 / sqrt(in_features)``.

    Args:
        in_features: Width of the input.
        out_features: Width of the output.
        bias: Whether a bias is added.
        rngs: Where the parameters are drawn from.

    Returns:
        A layer from (..., in_features) to (..., out_features); input and parameters must have one
        floating dtype.
    """

    def uniform(key: Array, shape: tuple[int, ...], dtype: Any) -> Array:
        bound = in_features**-0.5
        return jax.random.uniform(key, shape, dtype, -bound, bound)

    return nnx.Linear(
        in_features,
        out_features,
        use_bias=bias,
        kernel_init=uniform,
        bias_init=uniform,
        dot_general=_dot_general,
        promote_dtype=one_dtype,
        rngs=rngs,
    )


def _dot_general(
    lhs: Array, rhs: Array, dimension_numbers: Any, precision: Any = None, **options: Any
) -> Array:
    # Resolved here, at the call: the layer may be older than the user's setting.
    precision = matmul_precision() if precision is None else precision
    return lax.dot_general(lhs, rhs, dimension_numbers, precision, **options)
