"""Two checkpoints of any layouts, compared tensor by tensor under their canonical names."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..spec.checks.sizes import Shape
from ..spec.errors import CheckpointError
from ..tensors.bits import bit_view, contiguous
from ..tensors.ulp import ulp_distance
from .checkpoint import Checkpoint
from .layouts.lazy_tensors import FLOATING, LazyTensor
from .reading import has_configuration, open_checkpoint

MOST_PRINTED = 10  # differences in the printed form

_CHUNK = 1 << 20


@dataclass(frozen=True)
class TensorDiff:
    """How one tensor differs between two checkpoints.

    Attributes:
        name: Its canonical name.
        dtypes: Dtype codes in a and b.
        shapes: Shapes in a and b, as torch stores them.
        elements: Number of elements whose bits differ; None where dtype or shape do.
        bits: Number of bits that differ; None likewise.
        first: Index of the first element that differs, None if there is none.
        values: That element in a and in b, as text.
        max_ulp: Largest distance in units in the last place, over elements that are not NaN;
            None for tensors that are not floating.
    """

    name: str
    dtypes: tuple[str, str]
    shapes: tuple[Shape, Shape]
    elements: int | None = None
    bits: int | None = None
    first: Shape | None = None
    values: tuple[str, str] | None = None
    max_ulp: int | None = None

    def __str__(self) -> str:
        if self.first is None or self.values is None:
            (dtype_a, dtype_b), (shape_a, shape_b) = self.dtypes, self.shapes
            return f"{self.name}: {dtype_a} {shape_a} != {dtype_b} {shape_b}"
        ulp = "" if self.max_ulp is None else f", at most {self.max_ulp} ulp"
        count = "1 element differs" if self.elements == 1 else f"{self.elements} elements differ"
        return (
            f"{self.name}: {count}{ulp}, "
            f"first {list(self.first)}: {self.values[0]} != {self.values[1]}"
        )


@dataclass(frozen=True)
class Diff:
    """What differs between two checkpoints.

    Attributes:
        a: What was read first.
        b: What was read second.
        only_in_a: Canonical names that b lacks.
        only_in_b: Canonical names that a lacks.
        different: Tensors that are in both and differ.
        equal: Number of tensors that are in both, bit for bit, recreated buffers included.
        recreatable: Source names of buffers that only one of the two stores or records, and that
            a recipe recreates; no difference.
        settings: Fields of the component's config that differ; no tensor, so no difference here.
    """

    a: str
    b: str
    only_in_a: tuple[str, ...]
    only_in_b: tuple[str, ...]
    different: tuple[TensorDiff, ...]
    equal: int
    recreatable: tuple[str, ...]
    settings: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """Return whether every tensor is in both, bit for bit."""
        return not (self.only_in_a or self.only_in_b or self.different)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {**asdict(self), "identical": self.identical}

    def __str__(self) -> str:
        lines = [f"{name}: only in {self.a}" for name in self.only_in_a]
        lines += [f"{name}: only in {self.b}" for name in self.only_in_b]
        lines += [str(found) for found in self.different]
        more = len(lines) - MOST_PRINTED
        if more > 0:
            lines[MOST_PRINTED:] = [f"and {more} more: --json lists all"]
        lines += [f"setting {setting}" for setting in self.settings]
        if self.recreatable:
            lines.append(f"recreatable, stored on one side only: {', '.join(self.recreatable)}")
        total = self.equal + len(self.different)
        unlike = sum(found.bits is None for found in self.different)
        bits = sum(found.bits or 0 for found in self.different)
        how = f"{unlike} of another dtype or shape" if unlike else f"{bits} bits differ"
        lines.append(f"{self.equal} of {total} tensors identical, {how}")
        return "\n".join(lines)


def diff_checkpoints(a: str | Path | Checkpoint, b: str | Path | Checkpoint) -> Diff:
    """Return how two checkpoints differ, whatever their layouts and containers.

    A bare state dict, without any configuration, is read with that of the other checkpoint.

    Raises:
        CheckpointError: If one of them cannot be read.
    """
    first, second = open_pair(a, b)
    left, right = first.tensors, second.tensors
    compared = [_diff(name, left[name], right[name]) for name in left if name in right]
    compared += _recreated_diffs(first, second)
    different = tuple(found for found in compared if found is not None)
    return Diff(
        a=str(first.path),
        b=str(second.path),
        only_in_a=tuple(name for name in left if name not in right),
        only_in_b=tuple(name for name in right if name not in left),
        different=different,
        equal=len(compared) - len(different),
        recreatable=tuple(sorted(first.recreated.keys() ^ second.recreated.keys())),
        settings=_setting_differences(first, second),
    )


def open_pair(
    a: str | Path | Checkpoint, b: str | Path | Checkpoint
) -> tuple[Checkpoint, Checkpoint]:
    """Return two checkpoints opened; where one has no configuration, the other's is taken.

    Raises:
        CheckpointError: If one of them cannot be read.
    """
    first = _open(a)
    second = _open(b)
    if isinstance(first, CheckpointError) and isinstance(second, Checkpoint):
        first = _open_like(a, second, first)
    elif isinstance(second, CheckpointError) and isinstance(first, Checkpoint):
        second = _open_like(b, first, second)
    for opened in (first, second):
        if isinstance(opened, CheckpointError):
            raise opened
    assert isinstance(first, Checkpoint)
    assert isinstance(second, Checkpoint)
    return first, second


def _open(source: str | Path | Checkpoint) -> Checkpoint | CheckpointError:
    if isinstance(source, Checkpoint):
        return source
    try:
        return open_checkpoint(source)
    except CheckpointError as error:
        return error


def _open_like(
    source: str | Path | Checkpoint, other: Checkpoint, error: CheckpointError
) -> Checkpoint | CheckpointError:
    """Return a checkpoint read with another's settings, or the error that it gave without."""
    if isinstance(source, Checkpoint) or other.family is None or has_configuration(source):
        return error
    try:
        settings = other.family.write_config(other.config, other.source_config)
        return open_checkpoint(source, config=settings)
    except ValueError:
        return error


def _diff(name: str, a: LazyTensor, b: LazyTensor) -> TensorDiff | None:
    head = TensorDiff(name, (a.dtype, b.dtype), (tuple(a.shape), tuple(b.shape)))
    if a.dtype != b.dtype or a.shape != b.shape:
        return head
    left, right = contiguous(a.read()), contiguous(b.read())
    elements, bits, first, max_ulp = 0, 0, None, 0
    for start, x, y in _chunks(left, right):
        differ = np.flatnonzero(bit_view(x) != bit_view(y))
        if not differ.size:
            continue
        first = start + int(differ[0]) if first is None else first
        elements += differ.size
        bits += _differing_bits(x[differ], y[differ])
        if a.dtype in FLOATING:
            max_ulp = max(max_ulp, _max_ulp(x[differ], y[differ]))
    if first is None:
        return None
    index = tuple(int(place) for place in np.unravel_index(first, left.shape))
    return TensorDiff(
        *(head.name, head.dtypes, head.shapes, elements, bits, index),
        values=(str(left[index]), str(right[index])),
        max_ulp=max_ulp if a.dtype in FLOATING else None,
    )


def _recreated_diffs(a: Checkpoint, b: Checkpoint) -> list[TensorDiff | None]:
    """Compare the buffers that both recreate: one recipe, dtype and shape give the same bytes."""
    names = [name for name in a.recreated if name in b.recreated]
    pairs = [(name, a.recreated[name], b.recreated[name]) for name in names]
    return [
        None if x == y else TensorDiff(name, (x.dtype, y.dtype), (x.shape, y.shape))
        for name, x, y in pairs
    ]


def _differing_bits(x: np.ndarray, y: np.ndarray) -> int:
    different = x.view(np.uint8) ^ y.view(np.uint8)
    return int(np.unpackbits(different).sum())


def _max_ulp(x: np.ndarray, y: np.ndarray) -> int:
    """Return the largest number of representable values between two numbers, NaN left out."""
    numbers = ~(np.isnan(x) | np.isnan(y))
    return int(ulp_distance(x[numbers], y[numbers]).max(initial=0))


def _chunks(a: np.ndarray, b: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    x, y = a.reshape(-1), b.reshape(-1)
    for start in range(0, x.size, _CHUNK):
        yield start, x[start : start + _CHUNK], y[start : start + _CHUNK]


def _setting_differences(a: Checkpoint, b: Checkpoint) -> tuple[str, ...]:
    left, right = _flat(a.config.to_dict()), _flat(b.config.to_dict())
    return tuple(
        f"{name}: {left.get(name)!r}, {right.get(name)!r}"
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
    )


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        nested = isinstance(value, Mapping)
        flat |= _flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value}
    return flat
