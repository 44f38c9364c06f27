"""Rotary positions, which attention modules hold."""

import math

import numpy as np

from diptych.spec import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    RotaryConfig,
    YarnScaling,
)
from parity_tests.attention.oracle import Array
from parity_tests.components.room import starting_at


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


ROTARY_PART = starting_at(
    RotaryConfig(dim=4),
    theta=10.0,
    dim=2,
    interleaved=True,
    scaling=LinearScaling(factor=2.0),
)
