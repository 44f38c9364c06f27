"""Rotating queries and keys by their positions.

T positions   N heads   H head width   P pairs of channels
"""

import torch
from torch import Tensor

from diptych.spec.checks.attention import check_integer_dtype, check_rotated, per_sample_shape
from diptych.spec.checks.sizes import check_floating
from diptych.spec.tables.sinusoid import Values

from ._dtype import dtype_name


def apply_rotary(
    x: Tensor,
    positions: Tensor,
    frequencies: Values,
    *,
    interleaved: bool = False,
    factor: float = 1.0,
) -> Tensor:
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
    check_rotated(P, tuple(x.shape), tuple(positions.shape))
    if positions.ndim > 1:
        shape = per_sample_shape(
            "positions", tuple(positions.shape), tuple(x.shape), (x.shape[-2],)
        )
        positions = positions.reshape(shape)  # (B, 1, T)
    dtype = torch.promote_types(x.dtype, torch.float32)
    # In this dtype as in the reference models: float64 angles part from theirs with the position.
    angles = positions[..., None].to(dtype) * torch.as_tensor(frequencies).to(x.device, dtype)
    cos, sin = factor * torch.cos(angles), factor * torch.sin(angles)  # (..., T, P)
    rotated, rest = x[..., : 2 * P].to(dtype), x[..., 2 * P :]
    if interleaved:
        a, b = rotated[..., 0::2], rotated[..., 1::2]
    else:
        a, b = rotated[..., :P], rotated[..., P:]
    a, b = a * cos - b * sin, b * cos + a * sin
    if interleaved:
        rotated = torch.stack([a, b], -1).reshape(rotated.shape)  # a0 b0 a1 b1 ..
    else:
        rotated = torch.cat([a, b], -1)  # a0 a1 .. b0 b1 ..
    return torch.cat([rotated.to(x.dtype), rest], -1)  # (..., T, H)
