"""What is added to the scores for the distance between a query and a key.

T query positions   S key positions   N heads
"""

import torch
from torch import Tensor
from torch.nn import functional as nnf

from diptych.spec import BucketTable
from diptych.spec.checks.attention import check_integer_dtype

from ._dtype import dtype_name


def alibi_bias(query_positions: Tensor, key_positions: Tensor, slopes: Tensor) -> Tensor:
    """Return ``slope * (key position - query position)`` for every head (Press et al. 2022).

    Args:
        query_positions: Integer (..., T).
        key_positions: Integer (..., S), with the same leading dimensions.
        slopes: (N,), of a ``SlopeTable``.

    Returns:
        Bias (..., N, T, S), in the dtype of ``slopes``.

    Raises:
        TypeError: If the positions are not integer.
    """
    distances = _distances(query_positions, key_positions)
    return distances[..., None, :, :].to(slopes.dtype) * slopes[:, None, None]


def relative_bias(
    query_positions: Tensor, key_positions: Tensor, weight: Tensor, table: BucketTable
) -> Tensor:
    """Return the learnt number of every head and bucket of distances (Raffel et al. 2020).

    Args:
        query_positions: Integer (..., T).
        key_positions: Integer (..., S), with the same leading dimensions.
        weight: (buckets, N).
        table: Where the buckets begin.

    Returns:
        Bias (..., N, T, S), in the dtype of ``weight``.

    Raises:
        TypeError: If the positions are not integer.
    """
    distances = _distances(query_positions, key_positions)
    # A bucket is the number of edges that a distance reaches, and the edges are integers made on
    # the host: XLA divides by multiplying with the reciprocal, and T5's 64 would miss its bucket.
    edges = torch.as_tensor(table.values, device=distances.device)
    if table.config.is_bidirectional:
        buckets = (abs(distances)[..., None] >= edges).sum(-1)  # (..., T, S)
        buckets = buckets + torch.where(distances > 0, table.direction, 0)
    else:
        buckets = ((-distances).clamp(min=0)[..., None] >= edges).sum(-1)
    return nnf.embedding(buckets, weight).movedim(-1, -3)  # (..., N, T, S)


def _distances(query_positions: Tensor, key_positions: Tensor) -> Tensor:
    """Return the key's position less the query's, (..., T, S)."""
    check_integer_dtype(
        query_positions=dtype_name(query_positions), key_positions=dtype_name(key_positions)
    )
    queries = query_positions[..., :, None].long()
    return key_positions[..., None, :].long() - queries
