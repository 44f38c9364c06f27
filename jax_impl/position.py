"""Positions: those of a call, rotating by them, and adding their sinusoids.

B batch   T query positions   S key positions   D model width   N heads   H head width
"""

from typing import NamedTuple

from jax import Array
from jax import numpy as jnp

from diptych.spec import PositionalEncodingConfig, RotaryTable, SinusoidTable
from diptych.spec.checks.attention import (
    check_integer_dtype,
    check_offset_size,
    check_pair,
    check_positions,
    check_same_lengths,
)

from . import functional
from .functional._dtype import dtype_name
from .functional.cache import Cache, RollingCache
from .module import Module


class Positions(NamedTuple):
    """Positions of a call.

    Attributes:
        queries: Integer (T,) or (..., T).
        keys: Integer (S,) or (..., S).
        length: All positions that the call may see, as far as shapes tell.
    """

    queries: Array
    keys: Array
    length: int


def call_positions(
    query: Array,
    key_length: int,
    *,
    offset: int | Array = 0,
    position_ids: Array | tuple[Array, Array] | None = None,
    cache: Cache | RollingCache | None = None,
) -> Positions:
    """Return the positions of a call: those given, or counted from the offset and from 0.

    Args:
        query: (..., T, D), of which only the shape is read.
        key_length: S.
        offset: Position of the first query.
        position_ids: Those of queries and keys, one array where T == S, else a pair.
        cache: Where there is one, queries and keys are its next rows.

    Returns:
        The positions.

    Raises:
        ValueError: If one array is given for T != S, or a shape does not fit.
        TypeError: If positions are not integer.
    """
    T, S = query.shape[-2], key_length
    check_offset_size(offset)
    length = max(T + offset if isinstance(offset, int) else T, S)
    if cache is not None:
        length = cache.entries[0].shape[-2]
    if position_ids is not None:
        if not isinstance(position_ids, tuple | list):
            check_same_lengths("position_ids", T, S)
            position_ids = position_ids, position_ids
        check_pair("position_ids", position_ids)
        for positions, rows in zip(position_ids, (T, S), strict=True):
            check_integer_dtype(position_ids=dtype_name(positions))
            check_positions("position_ids", positions.shape, (*query.shape[:-2], rows))
        return Positions(*position_ids, length)
    if cache is not None:
        queries = cached_positions(cache, T)  # (B, T)
        return Positions(queries, queries, length)
    start = jnp.asarray(offset)[..., None]  # (1,) or (..., 1)
    queries = start + jnp.arange(T)  # (T,) or (..., T)
    return Positions(queries, jnp.arange(S), length)


def cached_positions(cache: Cache | RollingCache, number: int) -> Array:
    """Return the next positions of every sample of a cache, integer (B, number)."""
    return cache.length[:, None] + jnp.arange(number)


def rotate(x: Array, positions: Array, table: RotaryTable | None, length: int) -> Array:
    """Return heads (..., N, T, H) rotated by their positions, or as they are without a table."""
    if table is None:
        return x
    return functional.apply_rotary(
        x,
        positions,
        table.frequencies(length),
        interleaved=table.config.interleaved,
        factor=table.factor,
    )


class PositionalEncoding(Module):
    """Sinusoidal positions added to the input (Vaswani et al. 2017, section 3.5).

    Args:
        d_model: Width D of the input, odd ones included.
        max_seq_len: Longest sequence accepted.

    Raises:
        ValueError: If a size is below 1.
    """

    def __init__(self, d_model: int, max_seq_len: int = 512):
        super().__init__()
        self.config = PositionalEncodingConfig(d_model=d_model, max_seq_len=max_seq_len)
        self.table = SinusoidTable(max_seq_len, d_model)

    def __call__(self, x: Array, *, offset: int = 0) -> Array:
        """Add the sinusoid of its position to every row.

        Args:
            x: Input (..., T, D).
            offset: Position of the first row.

        Returns:
            Output (..., T, D), in the dtype of ``x``.

        Raises:
            ValueError: If ``offset + T`` exceeds max_seq_len, the offset is negative or the last
                axis is not D.
            TypeError: If ``x`` is not floating.
        """
        return functional.add_sinusoids(x, self.table, offset=offset)
