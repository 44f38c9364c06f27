"""Rotary positions and position biases in numpy float64, from the papers' formulas."""

import math
from typing import Any

import numpy as np

from diptych.spec import (
    AlibiConfig,
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    RotaryConfig,
    YarnScaling,
)
from parity_tests.attention.oracle import Array


def rotate(config: RotaryConfig, x: Array, positions: Array, length: int) -> Array:
    """Turn each pair of channels, seen as a complex number, by its angle (Su et al. 2021).

    Args:
        config: Of the rotation.
        x: (..., heads, T, H).
        positions: (T,), or (B, T).
        length: Which dynamic and longrope scaling read.
    """
    dim = x.shape[-1] if config.dim is None else config.dim
    rates, factor = frequencies(config, dim, length)
    positions = np.asarray(positions, np.float64)
    if positions.ndim > 1:
        positions = positions[:, None]
    turn = factor * np.exp(1j * positions[..., None] * rates)
    first, second = (
        (np.arange(0, dim, 2), np.arange(1, dim, 2))
        if config.interleaved
        else (np.arange(dim // 2), np.arange(dim // 2, dim))
    )
    turned = (x[..., first] + 1j * x[..., second]) * turn
    result = np.array(x, np.float64)
    result[..., first], result[..., second] = turned.real, turned.imag
    return result


def frequencies(config: RotaryConfig, dim: int, length: int) -> tuple[Array, float]:
    """Return the angle of one step for every pair, and the factor on the rotated channels."""
    scaling, theta, factor = config.scaling, config.theta, 1.0
    if isinstance(scaling, DynamicScaling):
        stretch = scaling.factor * max(length, scaling.max_seq_len) / scaling.max_seq_len
        theta *= (stretch - (scaling.factor - 1.0)) ** (dim / (dim - 2.0))
    rates = theta ** (-2.0 * np.arange(dim // 2) / dim)
    if isinstance(scaling, LinearScaling):
        rates = rates / scaling.factor
    if isinstance(scaling, Llama3Scaling):
        rates = np.array([_llama3(scaling, rate) for rate in rates])
    if isinstance(scaling, LongRopeScaling):
        is_long = length > scaling.max_seq_len
        rates = rates / np.array(scaling.long_factor if is_long else scaling.short_factor)
        factor = scaling.attention_factor or math.sqrt(
            1.0 + math.log(scaling.factor) / math.log(scaling.max_seq_len)
        )
    if isinstance(scaling, YarnScaling):
        rates, factor = _yarn(scaling, config.theta, dim, rates)
    return rates, factor


def _llama3(scaling: Llama3Scaling, rate: float) -> float:
    turns = scaling.max_seq_len * rate / (2.0 * math.pi)
    if turns < scaling.low_freq_factor:
        return rate / scaling.factor
    if turns > scaling.high_freq_factor:
        return rate
    smooth = (turns - scaling.low_freq_factor) / (
        scaling.high_freq_factor - scaling.low_freq_factor
    )
    return (1.0 - smooth) * rate / scaling.factor + smooth * rate


def _yarn(scaling: YarnScaling, theta: float, dim: int, rates: Array) -> tuple[Array, float]:
    def index(turns: float) -> float:
        return dim * math.log(scaling.max_seq_len / (2 * math.pi * turns)) / (2 * math.log(theta))

    low, high = index(scaling.beta_fast), index(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high = high + 0.001 if high == low else high
    mixed = []
    for i, rate in enumerate(rates):
        ramp = min(max((i - low) / (high - low), 0.0), 1.0)
        mixed.append(ramp * rate / scaling.factor + (1.0 - ramp) * rate)

    def temper(by: float) -> float:
        return 0.1 * by * math.log(scaling.factor) + 1.0

    factor = temper(1.0)
    if scaling.mscale and scaling.mscale_all_dim:
        factor = temper(scaling.mscale) / temper(scaling.mscale_all_dim)
    return np.array(mixed), scaling.attention_factor or factor


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
