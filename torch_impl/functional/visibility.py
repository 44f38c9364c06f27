"""Which keys a query may attend to, by every argument that can hide one.

T query positions   S key positions   N query heads   H head width
"""

import functools
import math

import torch
from torch import Tensor

from diptych.spec.checks.attention import (
    aligned_shape,
    check_integer_dtype,
    check_mask_dtype,
    check_offset_size,
    check_pair,
    check_same_lengths,
    per_sample_shape,
    window_sides,
)

from ._dtype import dtype_name
from .mask import causal_mask, window_mask


def visible_keys(
    query: Tensor,
    key_length: int,
    *,
    mask: Tensor | None = None,
    key_mask: Tensor | None = None,
    bias: Tensor | None = None,
    is_causal: bool = False,
    offset: int | Tensor = 0,
    window: int | tuple[int, int] | None = None,
    segment_ids: Tensor | tuple[Tensor, Tensor] | None = None,
) -> Tensor | None:
    """Return the one mask of all that can hide a key; a key is visible where all allow it.

    The query's shape is read, not its values; the arguments are those of
    ``scaled_dot_product_attention``, with the number of keys S in place of the keys.

    Returns:
        Boolean, broadcasting to (..., N, T, S), or None if nothing can hide a key.

    Raises:
        ValueError: If a shape or the window does not fit.
        TypeError: If a mask is floating, or ``offset`` or a segment is not integer.
    """
    T, S = query.shape[-2], key_length
    allowed = []
    if mask is not None:
        check_mask_dtype(mask=dtype_name(mask))
        allowed.append(align("mask", mask, query, S) != 0)
    if key_mask is not None:
        check_mask_dtype(key_mask=dtype_name(key_mask))
        allowed.append(_per_sample("key_mask", key_mask, query, (S,))[..., None, :] != 0)
    if bias is not None:
        # Only -inf hides: the smallest finite number is a score like any other.
        allowed.append(align("bias", bias, query, S) != -math.inf)
    if is_causal or window is not None:
        check_offset_size(offset)
        offset = torch.as_tensor(offset, device=query.device)
        if offset.ndim > 0:
            offset = _per_sample("offset", offset, query, ())
    if is_causal:
        allowed.append(causal_mask(T, S, offset=offset))
    if window is not None:
        allowed.append(window_mask(T, S, window_sides(window, is_causal), offset=offset))
    if segment_ids is not None:
        query_ids, key_ids = _segment_pair(segment_ids, T, S)
        check_integer_dtype(segment_ids=dtype_name(query_ids))
        check_integer_dtype(segment_ids=dtype_name(key_ids))
        query_ids = _per_sample("segment_ids of the queries", query_ids, query, (T,))
        key_ids = _per_sample("segment_ids of the keys", key_ids, query, (S,))
        allowed.append(query_ids[..., :, None] == key_ids[..., None, :])  # (..., 1, T, S)
    return functools.reduce(torch.logical_and, allowed) if allowed else None


def align(name: str, x: Tensor, query: Tensor, key_length: int) -> Tensor:
    """Return a mask or bias in a shape that broadcasts to (..., N, T, S).

    Args:
        name: Of the argument, for the error.
        x: (T, S); or without the axis N, one per sample; or with it.
        query: (..., N, T, H), of which only the shape is read.
        key_length: S.

    Returns:
        The same values.

    Raises:
        ValueError: If the shape does not fit.
    """
    return x.reshape(aligned_shape(name, tuple(x.shape), tuple(query.shape), key_length))


def _per_sample(name: str, x: Tensor, query: Tensor, last: tuple[int, ...]) -> Tensor:
    return x.reshape(per_sample_shape(name, tuple(x.shape), tuple(query.shape), last))


def _segment_pair(
    segment_ids: Tensor | tuple[Tensor, Tensor], T: int, S: int
) -> tuple[Tensor, Tensor]:
    if isinstance(segment_ids, tuple | list):
        check_pair("segment_ids", segment_ids)
        return segment_ids[0], segment_ids[1]
    check_same_lengths("segment_ids", T, S)
    return segment_ids, segment_ids
