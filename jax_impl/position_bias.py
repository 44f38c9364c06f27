"""Learnt bias of the scores for the distance between a query and a key.

T query positions   S key positions   N heads
"""

from flax import nnx
from jax import Array
from jax import numpy as jnp

from diptych.spec import (
    AlibiConfig,
    BucketTable,
    RelativeBiasConfig,
    RelativePositionBiasConfig,
    SlopeTable,
)
from diptych.spec.checks.attention import check_bias_dtype

from . import functional
from .embedding import Embedding
from .functional._dtype import dtype_name
from .functional.visibility import align
from .module import Module, config_of


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
        self.config = config_of(RelativePositionBiasConfig, locals())
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


def distance_bias(
    config: RelativeBiasConfig | AlibiConfig | None, num_heads: int, *, rngs: nnx.Rngs
) -> RelativePositionBias | SlopeTable | None:
    """Return what makes the bias of a config for N heads.

    Args:
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
    # Ones in front, so that positions for all samples stand beside those of each.
    queries = query_positions.reshape(*[1] * (rank - query_positions.ndim), *query_positions.shape)
    keys = key_positions.reshape(*[1] * (rank - key_positions.ndim), *key_positions.shape)
    if isinstance(source, SlopeTable):
        dtype = jnp.promote_types(query.dtype, jnp.float32)
        slopes = jnp.asarray(source.values, dtype)
        distances = functional.alibi_bias(queries, keys, slopes)  # (..., N, T, S)
    else:
        distances = source(queries, keys)  # (..., N, T, S)
    distances = distances.reshape(*[1] * (query.ndim - distances.ndim), *distances.shape)
    if bias is None:
        return distances
    check_bias_dtype(dtype_name(bias))
    return align("bias", bias, query, keys.shape[-1]) + distances
