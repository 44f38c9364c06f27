"""Positions that are added: sinusoids to vectors, biases to scores."""

import math
from typing import Any

import numpy as np

from diptych.spec import AlibiConfig, PositionalEncodingConfig, RelativePositionBiasConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.room import KEYS, QUERIES, Example, Room, T, X
from parity_tests.support.sizes import MAX_LEN, B, D, N


def positional_encoding(config, tensors, x, *, offset=0):
    def at(position: int, column: int) -> float:
        angle = position / 10000.0 ** (2 * (column // 2) / config.d_model)
        return math.cos(angle) if column % 2 else math.sin(angle)

    columns = range(config.d_model)
    rows = range(offset, offset + x.shape[-2])
    return x + np.array([[at(position, column) for column in columns] for position in rows])


def position_bias(
    config: Any, weight: Array | None, num_heads: int, queries: Array, keys: Array
) -> Array:
    """Return what is added to the scores, (N, T, S) or (B, N, T, S).

    Args:
        config: ``AlibiConfig`` or ``RelativeBiasConfig``.
        weight: (buckets, N) for the latter.
        num_heads: N.
        queries: Positions (T,), or (B, T).
        keys: Positions (S,), or (B, S).
    """
    distance = np.asarray(keys)[..., None, :] - np.asarray(queries)[..., :, None]
    if isinstance(config, AlibiConfig):
        slopes = np.array(_slopes(num_heads, config.max_exponent)) * config.scale
        return distance[..., None, :, :] * slopes[:, None, None]
    bucket = np.vectorize(lambda d: _bucket(config, int(d)), otypes=[np.int64])
    rows = bucket(distance) if distance.size else distance
    return np.moveaxis(weight[rows], -1, -3)


def _slopes(num_heads: int, max_exponent: float) -> list[float]:
    """Press et al. 2022; another head count takes every second slope of twice as many heads."""
    if math.log2(num_heads).is_integer():
        start = 2.0 ** (-max_exponent / num_heads)
        return [start ** (n + 1) for n in range(num_heads)]
    below = 2 ** math.floor(math.log2(num_heads))
    return (
        _slopes(below, max_exponent) + _slopes(2 * below, max_exponent)[0::2][: num_heads - below]
    )


def _bucket(config: Any, distance: int) -> int:
    """Raffel et al. 2020: exact buckets up to half, then logarithmic ones, in whole numbers."""
    buckets, start = config.num_buckets, 0
    if config.is_bidirectional:
        buckets //= 2
        start = buckets if distance > 0 else 0
        distance = abs(distance)
    else:
        distance = max(-distance, 0)
    exact = buckets // 2
    if distance < exact:
        return start + distance
    coarse, step = buckets - exact, 0
    while (
        step < coarse - 1
        and distance**coarse * exact ** (step + 1)
        >= config.max_distance ** (step + 1) * exact**coarse
    ):
        step += 1
    return start + exact + step


def relative_position_bias(config, tensors, query_positions, key_positions):
    weight = tensors["bias_embed.weight"]
    return position_bias(config, weight, config.num_heads, query_positions, key_positions)


POSITIONAL_ENCODING = Room(
    Example(PositionalEncodingConfig(d_model=D, max_seq_len=MAX_LEN), (X,)),
    changes={"d_model": 2 * D, "max_seq_len": 6},
    formula=positional_encoding,
    calls={
        "PositionalEncoding": lambda draw: ComponentCase(
            PositionalEncodingConfig(d_model=D, max_seq_len=MAX_LEN),
            {"x": draw.normal(B, QUERIES, D)},
            {"offset": 3},
            is_working=True,
        )
    },
)
RELATIVE_POSITION_BIAS = Room(
    Example(
        RelativePositionBiasConfig(num_heads=N, num_buckets=8, max_distance=10),
        (np.stack([np.arange(T), 3 * np.arange(T)]), np.stack([np.arange(T)] * 2)),
    ),
    changes={"num_heads": N + 1, "num_buckets": 4, "max_distance": 3, "is_bidirectional": False},
    formula=relative_position_bias,
    calls={
        "RelativePositionBias": lambda draw: ComponentCase(
            RelativePositionBiasConfig(num_heads=N, num_buckets=8, max_distance=10),
            {"query_positions": 3 + np.arange(QUERIES), "key_positions": np.arange(KEYS)},
        ),
        "RelativePositionBias, one direction": lambda draw: ComponentCase(
            RelativePositionBiasConfig(
                num_heads=N, num_buckets=6, max_distance=9, is_bidirectional=False
            ),
            {"query_positions": 9 * np.arange(QUERIES), "key_positions": 5 * np.arange(KEYS)},
        ),
    },
)
