"""Drawing by a key."""

import math

import jax
from jax import Array
from jax import numpy as jnp


def draw_kept(x: Array, rate: float, rng_key: Array | None) -> Array:
    """Return an array of the shape of ``x`` that is true with probability ``1 - rate``."""
    if rng_key is None:
        raise ValueError(
            f"a dropout rate of {rate} needs rng_key=, or .eval(), which drops nothing"
        )
    # Unsigned integers, since jax.random.bernoulli draws other values when x64 is on.
    threshold = min(math.ceil(rate * 2**32), 2**32 - 1)
    return jax.random.bits(rng_key, x.shape, "uint32") >= jnp.uint32(threshold)
