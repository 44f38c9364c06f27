"""Invertible array transforms: the only things that a conversion may do to a tensor.

Every transform takes and returns a sequence of arrays in any strides, and moves bytes through
unsigned views (so that NaN payloads, -0.0 and denormals stay what they are). Where it can it
returns views: what is transposed twice, or cut and then written, is copied once at most.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Protocol

import numpy as np

from ..spec.checks.sizes import Shape
from ..tensors.bits import (
    TensorSpec,
    bit_view,
    check_one,
    check_same_dtype,
    contiguous,
    same_bytes,
    specs_of,
)

DELETE = "to untie them, delete the one that is not to be read"


class Transform(Protocol):
    """What every transform offers."""

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the transformed arrays, of the same dtype, perhaps views of those given."""

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        """Return what ``apply`` would give, from headers only.

        Raises:
            ValueError: If the inputs do not fit; names the shapes and the rule.
        """

    @property
    def inverse(self) -> "Transform":
        """Return the transform that undoes this one, bit for bit."""


@dataclass(frozen=True)
class Keep:
    """Pass one tensor through; its own inverse."""

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        check_one(arrays)
        return list(arrays)

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_one(specs)
        return list(specs)

    @property
    def inverse(self) -> "Keep":
        return self


@dataclass(frozen=True)
class Transpose:
    """Reorder the axes: output axis j is input axis ``axes[j]``."""

    axes: tuple[int, ...] = (1, 0)

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        return [arrays[0].transpose(self.axes)]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_one(specs)
        dtype, shape = specs[0]
        if len(shape) != len(self.axes):
            raise ValueError(f"shape {shape} needs rank {len(self.axes)} to be transposed")
        return [TensorSpec(dtype, tuple(shape[axis] for axis in self.axes))]

    @property
    def inverse(self) -> "Transpose":
        return Transpose(_inverse_order(self.axes))


@dataclass(frozen=True)
class Permute:
    """Reorder the entries along one axis: output entry j is input entry ``order[j]``."""

    order: tuple[int, ...]
    axis: int = 0

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        bits = bit_view(arrays[0])
        return [np.take(bits, self.order, axis=self.axis).view(arrays[0].dtype)]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_one(specs)
        if _size(specs[0].shape, self.axis) != len(self.order):
            raise ValueError(
                f"shape {specs[0].shape} needs {len(self.order)} entries along axis {self.axis}"
            )
        return list(specs)

    @property
    def inverse(self) -> "Permute":
        return Permute(_inverse_order(self.order), self.axis)


@dataclass(frozen=True)
class Split:
    """Cut one tensor along an axis: an int means that many equal parts, a tuple their sizes."""

    parts: int | tuple[int, ...]
    axis: int = 0

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        sizes = self._sizes(specs_of(arrays))
        edges = np.cumsum([0, *sizes])
        bits = np.moveaxis(bit_view(arrays[0]), self.axis, 0)
        dtype = arrays[0].dtype
        return [
            np.moveaxis(bits[start:stop], 0, self.axis).view(dtype)
            for start, stop in pairwise(edges)
        ]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        dtype, shape = specs[0]
        return [TensorSpec(dtype, _resized(shape, self.axis, size)) for size in self._sizes(specs)]

    @property
    def inverse(self) -> "Join":
        return Join(self.parts, self.axis)

    def _sizes(self, specs: Sequence[TensorSpec]) -> tuple[int, ...]:
        check_one(specs)
        size = _size(specs[0].shape, self.axis)
        if isinstance(self.parts, int):
            if size % self.parts:
                raise ValueError(
                    f"shape {specs[0].shape} cannot be cut into {self.parts} equal parts along "
                    f"axis {self.axis}"
                )
            return (size // self.parts,) * self.parts
        if sum(self.parts) != size:
            raise ValueError(
                f"shape {specs[0].shape} cannot be cut into {self.parts} along axis {self.axis}"
            )
        return self.parts


@dataclass(frozen=True)
class Join:
    """Concatenate tensors along an axis; the inverse of ``Split``."""

    parts: int | tuple[int, ...]
    axis: int = 0

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        bits = [bit_view(array) for array in arrays]
        if all(each.flags.f_contiguous for each in bits):  # as transposed matrices are
            axis = -1 - (self.axis if self.axis >= 0 else bits[0].ndim + self.axis)
            return [np.concatenate([b.T for b in bits], axis=axis).T.view(arrays[0].dtype)]
        return [np.concatenate(bits, axis=self.axis).view(arrays[0].dtype)]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        equal = isinstance(self.parts, int)
        count = self.parts if isinstance(self.parts, int) else len(self.parts)
        check_same_dtype(specs, count)
        sizes = tuple(_size(spec.shape, self.axis) for spec in specs)
        rests = {_resized(spec.shape, self.axis, 0) for spec in specs}
        if len(rests) > 1 or (len(set(sizes)) > 1 if equal else sizes != self.parts):
            shapes = ", ".join(str(spec.shape) for spec in specs)
            raise ValueError(f"shapes {shapes} do not join into {self.parts} along {self.axis}")
        return [TensorSpec(specs[0].dtype, _resized(specs[0].shape, self.axis, sum(sizes)))]

    @property
    def inverse(self) -> Split:
        return Split(self.parts, self.axis)


@dataclass(frozen=True)
class Stack:
    """Put ``count`` tensors of one shape under a new axis."""

    count: int
    axis: int = 0

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        bits = [bit_view(array) for array in arrays]
        return [np.stack(bits, axis=self.axis).view(arrays[0].dtype)]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_same_dtype(specs, self.count)
        shapes = {spec.shape for spec in specs}
        if len(shapes) > 1:
            raise ValueError(f"shapes {', '.join(map(str, sorted(shapes)))} cannot be stacked")
        shape = list(specs[0].shape)
        shape.insert(self.axis if self.axis >= 0 else len(shape) + 1 + self.axis, self.count)
        return [TensorSpec(specs[0].dtype, tuple(shape))]

    @property
    def inverse(self) -> "Unstack":
        return Unstack(self.count, self.axis)


@dataclass(frozen=True)
class Unstack:
    """Give every entry along an axis a tensor of its own; the inverse of ``Stack``."""

    count: int
    axis: int = 0

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        bits = np.moveaxis(bit_view(arrays[0]), self.axis, 0)
        return [entry.view(arrays[0].dtype) for entry in bits]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_one(specs)
        dtype, shape = specs[0]
        if _size(shape, self.axis) != self.count:
            raise ValueError(f"shape {shape} needs {self.count} entries along axis {self.axis}")
        axis = self.axis % len(shape)
        return [TensorSpec(dtype, shape[:axis] + shape[axis + 1 :])] * self.count

    @property
    def inverse(self) -> Stack:
        return Stack(self.count, self.axis)


@dataclass(frozen=True)
class Chain:
    """Apply transforms from left to right."""

    steps: tuple[Transform, ...]

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        for step in self.steps:
            arrays = step.apply(arrays)
        return list(arrays)

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        for step in self.steps:
            specs = step.outputs(specs)
        return list(specs)

    @property
    def inverse(self) -> "Chain":
        return Chain(tuple(step.inverse for step in reversed(self.steps)))


@dataclass(frozen=True)
class Each:
    """Apply one transform to each tensor, the first to the first; each takes and gives one."""

    parts: tuple[Transform, ...]

    def apply(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        self.outputs(specs_of(arrays))
        pairs = zip(self.parts, arrays, strict=True)
        return [output for part, array in pairs for output in part.apply([array])]

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        if len(specs) != len(self.parts):
            raise ValueError(f"{len(self.parts)} tensors expected, got {len(specs)}")
        pairs = zip(self.parts, specs, strict=True)
        return [output for part, spec in pairs for output in part.outputs([spec])]

    @property
    def inverse(self) -> "Each":
        return Each(tuple(part.inverse for part in self.parts))


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
        return [arrays[0]] * self.count

    def outputs(self, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
        check_one(specs)
        return [specs[0]] * self.count

    @property
    def inverse(self) -> Tie:
        return Tie(self.count)


def _size(shape: Shape, axis: int) -> int:
    if not -len(shape) <= axis < len(shape):
        raise ValueError(f"shape {shape} has no axis {axis}")
    return shape[axis]


def _resized(shape: Shape, axis: int, size: int) -> Shape:
    axis %= len(shape)
    return (*shape[:axis], size, *shape[axis + 1 :])


def _inverse_order(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(place) for place in np.argsort(order))
