"""Tied tensors: one parameter that a checkpoint stores under several names."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from .bits import TensorSpec, check_one, check_same_dtype, contiguous, same_bytes, specs_of

DELETE = "to untie them, delete the one that is not to be read"


@dataclass(frozen=True)
class Tie:
    """Make one tensor of ``count`` stored copies, which must hold the same bytes.

    Attributes:
        count: Number of copies.
        remedy: What to do where they do not.
    """

    count: int
    remedy: str = field(default=DELETE, compare=False)

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        first = contiguous(arrays[0])
        for array in arrays[1:]:
            if not same_bytes(first, contiguous(array)):
                raise ValueError(f"the tied copies differ; {self.remedy}")
        return [first]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_same_dtype(specs, self.count)
        shapes = {spec.shape for spec in specs}
        if len(shapes) > 1:
            raise ValueError(f"tied copies of different shapes {sorted(shapes)}")
        return [specs[0]]

    @property
    def inverse(self) -> "Copy":
        return Copy(self.count)


@dataclass(frozen=True)
class Copy:
    """Store one tensor ``count`` times; the inverse of ``Tie``."""

    count: int

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        check_one(arrays)
        return [contiguous(arrays[0])] * self.count

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_one(specs)
        return [specs[0]] * self.count

    @property
    def inverse(self) -> Tie:
        return Tie(self.count)
