"""One random key for each child of a call."""

from collections.abc import Sequence

import jax
from jax import Array


def split(rng_key: Array | None, number: int) -> Sequence[Array | None]:
    """Return ``number`` keys, or as many None without a key, so that a child can refuse it."""
    return [None] * number if rng_key is None else list(jax.random.split(rng_key, number))
