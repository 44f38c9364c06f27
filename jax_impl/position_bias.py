"""Learnt bias of the scores for the distance between a query and a key.

T query positions   S key positions   N heads
"""

from typing import NamedTuple

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import (
    AlibiConfig,
    BucketTable,
    RelativeBiasConfig,
    RelativePositionBiasConfig,
    RotaryTable,
    SlopeTable,
)
from diptych.spec.checks.attention import (
    check_bias_dtype,
    check_integer_dtype,
    check_offset_size,
    check_pair,
    check_position_lengths,
    check_positions,
)

from . import functional
from .embedding import Embedding
from .functional._dtype import dtype_name
from .functional.cache import Cache, RollingCache
from .functional.visibility import align
from .module import Module


class RelativePositionBias(Module):
    """A learnt number for every head and bucket of distances (Raffel et al. 2020, T5).

    Args:
        num_heads: Number N of heads.
        num_buckets: Number of buckets.
        max_distance: Distance from which all share the last bucket.
        is_bidirectional: Whether keys after the query have buckets of their own.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If there are too few buckets or the distance lies within the exact ones.
    """

    def __init__(
        self,
        num_heads: int,
        *,
        num_buckets: int = 32,
        max_distance: int = 128,
        is_bidirectional: bool = True,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = RelativePositionBiasConfig(
            num_heads=num_heads,
            num_buckets=num_buckets,
            max_distance=max_distance,
            is_bidirectional=is_bidirectional,
        )
        self.table = BucketTable(self.config)
        self.bias_embed = Embedding(num_buckets, num_heads, rngs=rngs)

    def __call__(self, query_positions: Array, key_positions: Array) -> Array:
        """Return what is added to the scores.

        Args:
            query_positions: Integer (..., T).
            key_positions: Integer (..., S), with the same leading dimensions.

        Returns:
            Bias (..., N, T, S), in the dtype of the parameters.

        Raises:
            TypeError: If the positions are not integer.
        """
        weight = self.bias_embed.embedding[...]
        return functional.relative_bias(query_positions, key_positions, weight, self.table)


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
            check_position_lengths(T, S)
            position_ids = position_ids, position_ids
        check_pair("position_ids", position_ids)
        for positions, rows in zip(position_ids, (T, S), strict=True):
            check_integer_dtype(position_ids=dtype_name(positions))
            check_positions("position_ids", positions.shape, (*query.shape[:-2], rows))
        return Positions(*position_ids, length)
    if cache is not None:
        queries = cached_positions(cache, T)
        return Positions(queries, queries, length)
    start = jnp.asarray(offset)[..., None]
    queries = start + jnp.arange(T)
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


def distance_bias(
    config: RelativeBiasConfig | AlibiConfig | None, num_heads: int, *, rngs: nnx.Rngs
) -> RelativePositionBias | SlopeTable | None:
    """Return what makes the bias of a config for so many heads.

    Args:
        config: Of the bias, or None.
        num_heads: Number N of heads.
        rngs: Where the parameters are drawn from.

    Returns:
        A module, a table, or None.
    """
    if config is None:
        return None
    if isinstance(config, AlibiConfig):
        return SlopeTable(config, num_heads)
    return RelativePositionBias.from_config(config.of(num_heads), rngs=rngs)


def add_distances(
    bias: Array | None,
    source: RelativePositionBias | SlopeTable | None,
    query_positions: Array,
    key_positions: Array,
    query: Array,
) -> Array | None:
    """Return a call's bias plus that of the distances, for a query (..., N, T, H)."""
    if source is None:
        return bias
    rank = max(query_positions.ndim, key_positions.ndim)
    queries = query_positions.reshape(*[1] * (rank - query_positions.ndim), *query_positions.shape)
    keys = key_positions.reshape(*[1] * (rank - key_positions.ndim), *key_positions.shape)
    if isinstance(source, SlopeTable):
        dtype = jnp.promote_types(query.dtype, jnp.float32)
        slopes = jnp.asarray(source.values, dtype)
        distances = functional.alibi_bias(queries, keys, slopes)
    else:
        distances = source(queries, keys)
    distances = distances.reshape(*[1] * (query.ndim - distances.ndim), *distances.shape)
    if bias is None:
        return distances
    check_bias_dtype(dtype_name(bias))
    return align("bias", bias, query, keys.shape[-1]) + distances
