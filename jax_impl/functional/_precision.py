"""The precision of matrix products."""

import jax
from jax import lax


def matmul_precision() -> lax.Precision | None:
    """Return the highest precision unless the user set another.

    To be called where the product is computed: what the user sets later, or in a scope, counts.
    """
    chosen = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return lax.Precision.HIGHEST if chosen is None else None
