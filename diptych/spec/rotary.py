"""How queries and keys are rotated by their positions (Su et al. 2021), and how that is scaled."""

from dataclasses import dataclass

from .checks.sizes import check_above_zero, check_boolean, check_kind, check_positive, is_number
from .config import Config


@dataclass(frozen=True, kw_only=True)
class LinearScaling(Config):
    """Positions divided by a factor (Chen et al. 2023).

    Attributes:
        factor: At least 1.
    """

    factor: float

    def __post_init__(self):
        check_factor(factor=self.factor)


@dataclass(frozen=True, kw_only=True)
class DynamicScaling(Config):
    """A base that grows with the length beyond the trained one (dynamic NTK, bloc97 2023).

    Attributes:
        factor: At least 1.
        max_seq_len: Trained length.
    """

    factor: float
    max_seq_len: int

    def __post_init__(self):
        check_factor(factor=self.factor)
        check_positive(max_seq_len=self.max_seq_len)


@dataclass(frozen=True, kw_only=True)
class YarnScaling(Config):
    """Low frequencies divided by a factor, high ones kept, a ramp between (Peng et al. 2023, YaRN).

    Attributes:
        factor: At least 1.
        max_seq_len: Trained length.
        beta_fast: Rotations over the trained length above which a frequency is kept.
        beta_slow: Rotations below which it is divided.
        attention_factor: Factor on cosine and sine; None means the paper's 0.1 ln(factor) + 1, or
            the quotient of that with the two that follow (DeepSeek-V2).
        mscale: Factor on the logarithm in the numerator.
        mscale_all_dim: Factor on the logarithm in the denominator.
        truncate: Whether the ramp's ends are rounded to whole channels.
    """

    factor: float
    max_seq_len: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True

    def __post_init__(self):
        check_boolean(truncate=self.truncate)
        check_factor(factor=self.factor)
        check_positive(max_seq_len=self.max_seq_len)
        check_above_zero(beta_fast=self.beta_fast, beta_slow=self.beta_slow)
        if self.attention_factor is not None:
            check_above_zero(attention_factor=self.attention_factor)
        for name in ("mscale", "mscale_all_dim"):
            value = getattr(self, name)
            if value is not None and not (is_number(value) and value == 0):  # 0: as none
                check_above_zero(**{name: value})


@dataclass(frozen=True, kw_only=True)
class Llama3Scaling(Config):
    """Long wavelengths divided by a factor, short ones kept, a blend between (Llama 3.1, 2024).

    Attributes:
        factor: At least 1.
        low_freq_factor: Wavelengths above max_seq_len / low_freq_factor are divided.
        high_freq_factor: Wavelengths below max_seq_len / high_freq_factor are kept.
        max_seq_len: Trained length.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    max_seq_len: int

    def __post_init__(self):
        check_factor(factor=self.factor)
        check_above_zero(
            low_freq_factor=self.low_freq_factor, high_freq_factor=self.high_freq_factor
        )
        check_positive(max_seq_len=self.max_seq_len)
        if not self.high_freq_factor > self.low_freq_factor:
            raise ValueError(
                f"high_freq_factor={self.high_freq_factor} must be above "
                f"low_freq_factor={self.low_freq_factor}"
            )


@dataclass(frozen=True, kw_only=True)
class LongRopeScaling(Config):
    """One divisor for every frequency, others beyond the trained length (Ding et al. 2024).

    Attributes:
        short_factor: Divisors up to the trained length, one for every pair of channels.
        long_factor: Divisors beyond it.
        max_seq_len: Trained length.
        attention_factor: Factor on cosine and sine; None means sqrt(1 + ln(factor) /
            ln(max_seq_len)).
        factor: Quotient of the longest and the trained length; needed without attention_factor.
    """

    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    max_seq_len: int
    attention_factor: float | None = None
    factor: float | None = None

    def __post_init__(self):
        check_positive(max_seq_len=self.max_seq_len)
        check_kind(tuple, short_factor=self.short_factor, long_factor=self.long_factor)
        if len(self.short_factor) != len(self.long_factor):
            raise ValueError(
                f"short_factor has {len(self.short_factor)} numbers, long_factor "
                f"{len(self.long_factor)}: they need one for every pair of channels"
            )
        check_above_zero(**{f"short_factor[{i}]": x for i, x in enumerate(self.short_factor)})
        check_above_zero(**{f"long_factor[{i}]": x for i, x in enumerate(self.long_factor)})
        if self.attention_factor is not None:
            check_above_zero(attention_factor=self.attention_factor)
        elif self.factor is None:
            raise ValueError("longrope needs an attention_factor or a factor")
        else:
            check_factor(factor=self.factor)
            if self.max_seq_len < 2:
                raise ValueError(f"max_seq_len={self.max_seq_len} must be at least 2")


Scaling = LinearScaling | DynamicScaling | YarnScaling | Llama3Scaling | LongRopeScaling


@dataclass(frozen=True, kw_only=True)
class RotaryConfig(Config):
    """Rotary positions: a part of the configs of attention.

    Attributes:
        theta: Base of the geometric frequencies ``theta**(-2i / dim)``.
        dim: Width of the leading channels that are rotated, even; None means the head's width.
        interleaved: Whether channels 2i and 2i + 1 form a pair, instead of i and i + dim / 2.
        scaling: How frequencies change for lengths beyond the trained one.

    Raises:
        ValueError: If a number is refused, or dim is odd.
    """

    theta: float = 10000.0
    dim: int | None = None
    interleaved: bool = False
    scaling: Scaling | None = None

    def __post_init__(self):
        check_boolean(interleaved=self.interleaved)
        check_above_zero(theta=self.theta)
        if self.scaling is not None:
            check_kind(Scaling, scaling=self.scaling)
        if isinstance(self.scaling, YarnScaling) and self.theta <= 1:
            raise ValueError(f"theta={self.theta} must be above 1 for a yarn scaling")
        if self.dim is not None:
            self.width(self.dim)

    def width(self, head_dim: int) -> int:
        """Return the number of channels rotated in a head.

        Raises:
            ValueError: If it is odd, or wider than the head, or longrope has not half as many
                divisors.
        """
        name, dim = ("head_dim", head_dim) if self.dim is None else ("dim", self.dim)
        check_positive(**{name: dim})
        if dim % 2:
            raise ValueError(f"{name}={dim} must be even to be rotated in pairs")
        if dim > head_dim:
            raise ValueError(f"dim={dim} must not exceed head_dim={head_dim}")
        if isinstance(self.scaling, DynamicScaling) and dim < 4:
            raise ValueError(f"{name}={dim} must be at least 4 for a dynamic scaling")
        if isinstance(self.scaling, LongRopeScaling) and len(self.scaling.short_factor) != dim // 2:
            raise ValueError(
                f"short_factor has {len(self.scaling.short_factor)} numbers, expected {dim // 2} "
                f"for {name}={dim}"
            )
        return dim


def check_factor(**factors: float) -> None:
    """Raise ValueError unless every factor is at least 1 and finite."""
    for name, factor in factors.items():
        check_above_zero(**{name: factor})
        if factor < 1:
            raise ValueError(f"{name}={factor} must be at least 1")
