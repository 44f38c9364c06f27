"""Masks: boolean arrays, true where a query may attend to a key.

B batch   T query positions   S key positions
"""

import functools

import jax.numpy as jnp
from jax import Array

from diptych.spec.checks.attention import (
    check_combined_masks,
    check_integer_dtype,
    check_mask_dtype,
    check_offset_size,
    window_sides,
)
from diptych.spec.checks.sizes import check_not_negative, check_positive

from ._dtype import dtype_name


def causal_mask(
    query_length: int, key_length: int | None = None, *, offset: int | Array = 0
) -> Array:
    """Return the mask in which query i sees keys 0 .. i + offset.

    It is true where a query may attend: on and below the diagonal, not above it.

    Args:
        query_length: T.
        key_length: S; None means T.
        offset: Position of the first query among the keys, possibly negative, or one per sample,
            integer (B,). S - T aligns the last query with the last key.

    Returns:
        Boolean (T, S), with offsets per sample (B, T, S).

    Raises:
        TypeError: If ``offset`` is not integer.
    """
    key_length = query_length if key_length is None else key_length
    check_offset_size(offset)
    return _distances(query_length, key_length, jnp.asarray(offset)) <= 0


def prefix_mask(
    query_length: int,
    key_length: int,
    prefix_lengths: Array,
    *,
    offset: int | Array = 0,
) -> Array:
    """Return the mask of a prefix language model: causal, but all see the prefix.

    Raffel et al. 2020, section 3.2.1.

    Args:
        query_length: T.
        key_length: S.
        prefix_lengths: Integer (B,), the number of keys that every query sees.
        offset: Position of the first query among the keys, or one per sample, integer (B,).

    Returns:
        Boolean (B, T, S).

    Raises:
        TypeError: If a number is not integer.
    """
    check_integer_dtype(prefix_lengths=dtype_name(prefix_lengths))
    keys = jnp.arange(key_length)
    is_prefix = (keys < prefix_lengths[..., None])[..., None, :]  # (B, 1, S)
    return causal_mask(query_length, key_length, offset=offset) | is_prefix


def window_mask(
    query_length: int,
    key_length: int,
    window: tuple[int, int],
    *,
    offset: int | Array = 0,
) -> Array:
    """Return the mask in which a query sees its own key and so many to the left and right.

    Args:
        query_length: T.
        key_length: S.
        window: Visible keys (left, right) of a query's own.
        offset: Position of the first query among the keys, or one per sample, integer (B,).

    Returns:
        Boolean (T, S), with offsets per sample (B, T, S).

    Raises:
        ValueError: If the window is refused.
        TypeError: If ``offset`` is not integer.
    """
    left, right = window_sides(window, False)
    check_offset_size(offset)
    distances = _distances(query_length, key_length, jnp.asarray(offset))
    return (-left <= distances) & (distances <= right)


def block_mask(
    query_length: int,
    key_length: int,
    block_size: int,
    *,
    num_previous: int = 0,
    offset: int | Array = 0,
) -> Array:
    """Return the mask in which a query sees the keys of its own block, and of some before it.

    Args:
        query_length: T.
        key_length: S.
        block_size: Number of positions in a block.
        num_previous: Number of blocks before its own that a query sees.
        offset: Position of the first query among the keys, or one per sample, integer (B,).

    Returns:
        Boolean (T, S), with offsets per sample (B, T, S).

    Raises:
        ValueError: If the block size is below 1 or the number of blocks below 0.
        TypeError: If ``offset`` is not integer.
    """
    check_positive(block_size=block_size)
    check_not_negative(num_previous=num_previous)
    check_offset_size(offset)
    offset = jnp.asarray(offset)
    check_integer_dtype(offset=dtype_name(offset))
    queries = offset[..., None, None] + jnp.arange(query_length)[:, None]
    blocks = queries // block_size - jnp.arange(key_length) // block_size
    return (blocks >= 0) & (blocks <= num_previous)


def segment_mask(query_ids: Array, key_ids: Array | None = None) -> Array:
    """Return the mask in which a query sees the keys of its own segment.

    Args:
        query_ids: Integer (B, T), the segment of every query.
        key_ids: Integer (B, S); None means those of the queries.

    Returns:
        Boolean (B, T, S).

    Raises:
        TypeError: If ids are not integer.
    """
    key_ids = query_ids if key_ids is None else key_ids
    check_integer_dtype(query_ids=dtype_name(query_ids), key_ids=dtype_name(key_ids))
    return query_ids[..., :, None] == key_ids[..., None, :]  # (B, T, S)


def padding_mask(lengths: Array, key_length: int) -> Array:
    """Return the mask in which a sample's keys 0 .. length - 1 are visible.

    Args:
        lengths: Integer (B,), or any leading dimensions.
        key_length: S.

    Returns:
        Boolean (B, 1, 1, S).

    Raises:
        TypeError: If ``lengths`` is not integer.
    """
    check_integer_dtype(lengths=dtype_name(lengths))
    return mask_from_keys(jnp.arange(key_length) < lengths[..., None])


def mask_from_keys(key_mask: Array) -> Array:
    """Return a key mask as a mask for all heads and queries.

    Args:
        key_mask: Boolean or integer (B, S), true or not 0 where the key is visible.

    Returns:
        Boolean (B, 1, 1, S).

    Raises:
        TypeError: If ``key_mask`` is floating.
    """
    check_mask_dtype(key_mask=dtype_name(key_mask))
    return (key_mask != 0)[..., None, None, :]  # (B, 1, 1, S)


def combine_masks(*masks: Array) -> Array:
    """Return the mask that is true where all masks are.

    Args:
        masks: Boolean or integer. Those of rank 2, (T, S), fit any other; the rest have one rank.

    Returns:
        Boolean, the shape to which the masks broadcast.

    Raises:
        ValueError: If there is no mask, or their shapes are ambiguous or do not fit.
        TypeError: If one is floating.
    """
    check_combined_masks([mask.shape for mask in masks])
    for mask in masks:
        check_mask_dtype(mask=dtype_name(mask))
    return functools.reduce(jnp.logical_and, [mask != 0 for mask in masks])


def _distances(T: int, S: int, offset: Array) -> Array:
    """Return the key's position less the query's, ``offset.shape + (T, S)``."""
    check_integer_dtype(offset=dtype_name(offset))
    query_positions = offset[..., None, None] + jnp.arange(T)[:, None]
    return jnp.arange(S) - query_positions  # (..., T, S)
