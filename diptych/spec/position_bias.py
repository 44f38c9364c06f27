"""What is added to the scores for the distance between a query and a key."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_above_zero, check_boolean, check_positive
from .config import Config, Leaf, Leaves


@dataclass(frozen=True, kw_only=True)
class RelativeBiasConfig(Config):
    """A learnt number for every head and bucket of distances: a part of the configs of attention.

    Attributes:
        num_buckets: Number of buckets, even if bidirectional; half of each direction's are exact.
        max_distance: Distance from which all share the last bucket.
        is_bidirectional: Whether keys after the query have buckets of their own.

    Raises:
        ValueError: If there are too few buckets or the distance lies within the exact ones.
    """

    num_buckets: int = 32
    max_distance: int = 128
    is_bidirectional: bool = True

    def __post_init__(self):
        check_boolean(is_bidirectional=self.is_bidirectional)
        check_positive(num_buckets=self.num_buckets, max_distance=self.max_distance)
        directions = 2 if self.is_bidirectional else 1
        # Half of a direction's buckets hold one distance each: both halves are whole.
        if self.num_buckets % (2 * directions):
            raise ValueError(
                f"num_buckets={self.num_buckets} must be a multiple of {2 * directions}"
            )
        exact = self.num_buckets // (2 * directions)
        if self.max_distance <= exact:
            raise ValueError(
                f"max_distance={self.max_distance} must exceed the {exact} exact buckets"
            )

    def of(self, num_heads: int) -> "RelativePositionBiasConfig":
        """Return the config of the component for a number of heads."""
        return RelativePositionBiasConfig(
            num_heads=num_heads,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
            is_bidirectional=self.is_bidirectional,
        )


@dataclass(frozen=True, kw_only=True)
class AlibiConfig(Config):
    """A penalty that grows with the distance: a part of the configs of attention.

    Attributes:
        max_exponent: The slopes fall from 2**(-max_exponent / N) to 2**-max_exponent.
        scale: Factor on the slopes.
    """

    max_exponent: float = 8.0
    scale: float = 1.0

    def __post_init__(self):
        check_above_zero(max_exponent=self.max_exponent, scale=self.scale)


@dataclass(frozen=True, kw_only=True)
class RelativePositionBiasConfig(RelativeBiasConfig):
    """The component that makes the bias of every head from positions (T5).

    Attributes:
        num_heads: Number of heads.
        num_buckets: Number of buckets.
        max_distance: Distance from which all share the last bucket.
        is_bidirectional: Whether keys after the query have buckets of their own.
    """

    component: ClassVar[str] = "RelativePositionBias"
    num_heads: int

    def __post_init__(self):
        check_positive(num_heads=self.num_heads)
        super().__post_init__()

    def leaves(self) -> Leaves:
        return {"bias_embed.weight": Leaf((self.num_buckets, self.num_heads), "embed")}


PositionBiasConfig = RelativeBiasConfig | AlibiConfig
