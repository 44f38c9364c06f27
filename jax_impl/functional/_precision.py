"""Matmul precision, resolved at the call: the user's setting where there is one, else the highest.

JAX's own default is the fastest precision of the device, bfloat16 passes on a TPU, where PyTorch's
default is full float32.
"""

import jax
from jax.lax import Precision


def matmul_precision() -> Precision | None:
    """Return what ``precision=`` of a product takes; None follows the user's setting.

    ``jax.jit`` traces anew when the setting changes, so it may be called while tracing.
    """
    setting = jax.config.jax_default_matmul_precision  # type: ignore[attr-defined]
    return Precision.HIGHEST if setting is None else None
