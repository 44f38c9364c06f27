"""Dropout."""

import jax.numpy as jnp
from jax import Array

from diptych.spec.checks.attention import check_keep, check_mask_dtype
from diptych.spec.checks.sizes import check_floating, check_rate

from ._draw import draw_kept
from ._dtype import dtype_name


def apply_dropout(
    x: Array, rate: float, *, keep: Array | None = None, rng_key: Array | None = None
) -> Array:
    """Set each element to 0 with probability ``rate`` and scale the others by 1 / (1 - rate).

    A rate of 0 draws nothing. Srivastava et al. 2014, in the inverted form.

    Args:
        x: Any shape.
        rate: Probability of dropping, 0 <= rate < 1.
        keep: Boolean or integer, the shape of ``x``: what to keep, instead of a draw.
        rng_key: Key of the draw. Without it and without ``keep``, a rate above 0 is a ValueError.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ValueError: If the rate is outside [0, 1), or ``keep`` has another shape.
        TypeError: If ``x`` is not floating, or ``keep`` is.
    """
    check_floating(x=dtype_name(x))
    check_rate(rate=rate)
    if keep is None:
        if rate == 0:
            return x
        kept = draw_kept(x, rate, rng_key)
    else:
        check_mask_dtype(keep=dtype_name(keep))
        check_keep(keep.shape, x.shape)
        kept = keep != 0
    # A product, since XLA turns a division by a constant into one and torch would not.
    # In float32 at least, as PyTorch computes it: JAX would round the factor to 16 bits.
    scaled = x.astype(jnp.promote_types(x.dtype, jnp.float32)) * (1 / (1 - rate))
    return jnp.where(kept, scaled.astype(x.dtype), 0.0)
