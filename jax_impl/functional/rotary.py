"""Rotating queries and keys by their positions.

T positions   N heads   H head width   P pairs of channels
"""

from jax import Array
from jax import numpy as jnp

from diptych.spec.checks.attention import check_integer_dtype, check_rotated, per_sample_shape
from diptych.spec.checks.sizes import check_floating
from diptych.spec.tables.sinusoid import Values

from ._dtype import dtype_name


def apply_rotary(
    x: Array,
    positions: Array,
    frequencies: Values,
    *,
    interleaved: bool = False,
    factor: float = 1.0,
) -> Array:
    """Rotate every pair of channels by its frequency times the position (Su et al. 2021).

    A pair ``(a, b)`` becomes ``(a cos - b sin, b cos + a sin)``, the angle being ``position *
    frequency``. Channels i and i + P form pair i, or, interleaved, 2i and 2i + 1; those from 2P on
    are left as they are. Angles, cosines and sines are computed in float32 at least.

    Args:
        x: (..., N, T, H), or of rank 2 or 3 (..., T, H).
        positions: Integer (T,), or (..., T), one per sample.
        frequencies: (P,), of a ``RotaryTable``.
        interleaved: Whether neighbours form a pair.
        factor: Factor on cosine and sine.

    Returns:
        The shape and dtype of ``x``.

    Raises:
        ValueError: If the positions do not fit, or 2P exceeds H.
        TypeError: If ``x`` is not floating, or ``positions`` not integer.
    """
    check_floating(x=dtype_name(x))
    check_integer_dtype(positions=dtype_name(positions))
    P = frequencies.shape[0]
    check_rotated(P, x.shape, positions.shape)
    if positions.ndim > 1:
        shape = per_sample_shape("positions", positions.shape, x.shape, (x.shape[-2],))
        positions = positions.reshape(shape)  # (B, 1, T)
    dtype = jnp.promote_types(x.dtype, jnp.float32)
    # In this dtype as in the reference models: float64 angles part from theirs with the position.
    angles = positions[..., None].astype(dtype) * jnp.asarray(frequencies, dtype)
    cos, sin = factor * jnp.cos(angles), factor * jnp.sin(angles)  # (..., T, P)
    rotated, rest = x[..., : 2 * P].astype(dtype), x[..., 2 * P :]
    if interleaved:
        a, b = rotated[..., 0::2], rotated[..., 1::2]
    else:
        a, b = rotated[..., :P], rotated[..., P:]
    a, b = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        rotated = jnp.stack([a, b], -1).reshape(rotated.shape)  # a0 b0 a1 b1 ..
    else:
        rotated = jnp.concatenate([a, b], -1)  # a0 a1 .. b0 b1 ..
    return jnp.concatenate([rotated.astype(x.dtype), rest], -1)  # (..., T, H)
