"""Tables of what is added to the scores for the distance between a query and a key."""

from dataclasses import dataclass, field

import numpy as np

from ..checks.sizes import check_positive
from ..position_bias import AlibiConfig, RelativeBiasConfig


@dataclass(frozen=True)
class SlopeTable:
    """ALiBi's slope of every head (Press et al. 2022); compares by its arguments.

    For a power of two N, head n has ``2**(-max_exponent (n + 1) / N)``. For another N, the slopes
    of the next power of two below come first, then every other one of twice as many heads.

    Attributes:
        config: Largest exponent and scale.
        num_heads: Number N of heads.
        values: float64 array (N,).
    """

    config: AlibiConfig
    num_heads: int
    values: np.ndarray = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        check_positive(num_heads=self.num_heads)
        below = 1 << (self.num_heads.bit_length() - 1)
        slopes = [*self._powers(below), *self._powers(2 * below)[::2]]
        values = np.array(slopes[: self.num_heads]) * self.config.scale
        object.__setattr__(self, "values", values)

    def _powers(self, number: int) -> list[float]:
        step = self.config.max_exponent / number
        return [2.0 ** (-step * (n + 1)) for n in range(number)]


@dataclass(frozen=True)
class BucketTable:
    """The smallest distance of every bucket but the first (Raffel et al. 2020); compares by config.

    Half of a direction's buckets hold one distance each; the rest divide those up to max_distance
    evenly on a logarithmic scale. Edges are worked out in integers, exactly.

    Attributes:
        config: Number of buckets, largest distance, directions.
        values: int32 array, one less than there are buckets in a direction.
    """

    config: RelativeBiasConfig
    values: np.ndarray = field(init=False, compare=False, repr=False)

    def __post_init__(self):
        exact, coarse = self.direction // 2, self.direction - self.direction // 2
        edges = list(range(1, exact + 1))
        for j in range(1, coarse):
            # Bucket exact + j starts where (d / exact)**coarse >= (max_distance / exact)**j.
            power = self.config.max_distance**j * exact ** (coarse - j)
            edges.append(_root_rounded_up(power, coarse))
        object.__setattr__(self, "values", np.array(edges, np.int32))

    @property
    def direction(self) -> int:
        """Return the number of buckets of one direction."""
        return self.config.num_buckets // (2 if self.config.is_bidirectional else 1)


def _root_rounded_up(number: int, degree: int) -> int:
    """Return the smallest integer whose power reaches a number."""
    low, high = 1, 2
    while high**degree < number:
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if middle**degree >= number else (middle + 1, high)
    return low
