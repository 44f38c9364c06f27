"""The frequencies with which channels are rotated, scaled as a config says."""

import math
from dataclasses import dataclass, field

import numpy as np

from ..rotary import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    RotaryConfig,
    YarnScaling,
)


@dataclass(frozen=True)
class RotaryTable:
    """Frequencies of a rotary config in a head; compares by its arguments.

    Attributes:
        config: Base, width and scaling.
        head_dim: Width of a head.
        values: float64 array (pairs,), frequencies up to the trained length.
        long_values: float64 array (pairs,), frequencies beyond it; the same but for longrope.
    """

    config: RotaryConfig
    head_dim: int
    values: np.ndarray = field(init=False, compare=False, repr=False)
    long_values: np.ndarray = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        scaling = self.config.scaling
        plain = np.array(_powers(self.config.theta, self.config.width(self.head_dim)))
        values = long_values = plain
        if isinstance(scaling, LinearScaling):
            values = long_values = plain / scaling.factor
        elif isinstance(scaling, YarnScaling):
            values = long_values = _yarn(plain, self.config.theta, scaling)
        elif isinstance(scaling, Llama3Scaling):
            values = long_values = _llama3(plain, scaling)
        elif isinstance(scaling, LongRopeScaling):
            values = plain / np.array(scaling.short_factor)
            long_values = plain / np.array(scaling.long_factor)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "long_values", long_values)

    def frequencies(self, length: int) -> np.ndarray:
        """Return the frequencies for a sequence of a length, float64 (pairs,).

        Args:
            length: All positions that the call may see: the cache's capacity where there is one.
                Only dynamic and longrope scaling depend on it.
        """
        scaling = self.config.scaling
        if isinstance(scaling, DynamicScaling) and length > scaling.max_seq_len:
            # Python floats, which torch.compile folds to constants; numpy's it would trace.
            dim = self.config.width(self.head_dim)
            stretch = scaling.factor * length / scaling.max_seq_len - (scaling.factor - 1.0)
            return np.array(_powers(self.config.theta * stretch ** (dim / (dim - 2)), dim))
        if isinstance(scaling, LongRopeScaling) and length > scaling.max_seq_len:
            return self.long_values
        return self.values

    @property
    def depends_on_length(self) -> bool:
        """Return whether frequencies depend on how long the sequence is."""
        return isinstance(self.config.scaling, DynamicScaling | LongRopeScaling)

    @property
    def factor(self) -> float:
        """Return the factor on cosine and sine."""
        scaling = self.config.scaling
        if not isinstance(scaling, YarnScaling | LongRopeScaling):
            return 1.0
        if scaling.attention_factor is not None:
            return scaling.attention_factor
        if isinstance(scaling, YarnScaling):
            if scaling.mscale and scaling.mscale_all_dim:
                ours, all_dim = scaling.mscale, scaling.mscale_all_dim
                return _mscale(scaling.factor, ours) / _mscale(scaling.factor, all_dim)
            return _mscale(scaling.factor, 1.0)
        return math.sqrt(1.0 + math.log(scaling.factor or 1.0) / math.log(scaling.max_seq_len))


def _powers(theta: float, dim: int) -> list[float]:
    return [1.0 / theta ** (i / dim) for i in range(0, dim, 2)]


def _mscale(factor: float, mscale: float) -> float:
    return 0.1 * mscale * math.log(factor) + 1.0 if factor > 1 else 1.0


def _yarn(plain: np.ndarray, theta: float, scaling: YarnScaling) -> np.ndarray:
    """Return frequencies kept, blended or divided (Peng et al. 2023, section 3.2)."""
    pairs = len(plain)

    def channel(rotations: float) -> float:
        turns = scaling.max_seq_len / (rotations * 2 * math.pi)
        return 2 * pairs * math.log(turns) / (2 * math.log(theta))

    low, high = channel(scaling.beta_fast), channel(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, 2 * pairs - 1)
    # As the reference code has it: a steep slope instead of a division by 0.
    if low == high:
        high += 0.001
    divided = np.clip((np.arange(pairs) - low) / (high - low), 0.0, 1.0)
    return plain / scaling.factor * divided + plain * (1.0 - divided)


def _llama3(plain: np.ndarray, scaling: Llama3Scaling) -> np.ndarray:
    wavelengths = 2 * math.pi / plain
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = np.clip((scaling.max_seq_len / wavelengths - low) / (high - low), 0.0, 1.0)
    return (1.0 - kept) * plain / scaling.factor + kept * plain
