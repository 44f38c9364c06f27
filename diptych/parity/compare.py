"""Comparing two sides, in numpy: the tiers of parity.

Two questions, two functions, one kind of answer: are two float64 results the same computation
(``compare_exact``), is a result in a narrower dtype as good as plain code in that dtype
(``compare_working``). Nothing here raises because two sides differ; a ``Comparison`` says so. Wrong
use of the functions raises.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from ..tensors.ulp import ulp_distance, unit_roundoff

EXACT_RELATIVE = 2.0**-40
"""Largest difference of two float64 results, over the largest magnitude of the tensor."""

SMALLEST_NORMAL = 2.0**-126
"""float32's; magnitudes below it count as 0, because XLA flushes them."""

VALUES_PER_TIE = 1_000_000
"""Of so many values, one may fall on a float32 rounding tie and differ by 1 ulp."""

HEADER = f"{'tensor':<44} {'values':>11} {'max |a-b|':>9} {'bound':>9} {'ties':>4}  verdict"
"""Column titles over the lines that ``str(comparison)`` gives."""


@dataclass(frozen=True)
class Comparison:
    """The result of comparing two tensors; ``str()`` of it is one line of a table.

    Attributes:
        name: Of the tensor.
        count: Number of values.
        difference: Largest |a - b|; NaN where one side is NaN and the other is not.
        bound: Largest |a - b| allowed.
        ties: Number of values that differ once both are rounded to float32.
        fault: Why the comparison failed, "" if it did not.
    """

    name: str
    count: int
    difference: float
    bound: float
    ties: int = 0
    fault: str = ""

    @property
    def ok(self) -> bool:
        """Return whether the two sides agree."""
        return not self.fault

    @property
    def verdict(self) -> str:
        """Return "identical", "equal" (within the bound) or the fault."""
        return self.fault or ("identical" if self.difference == 0 else "equal")

    def __str__(self) -> str:
        return (
            f"{self.name:<44} {self.count:>11,} {self.difference:>9.2e} {self.bound:>9.2e} "
            f"{self.ties:>4}  {self.verdict}"
        )


def tie_limit(count: int) -> int:
    """Return how many of ``count`` values, all of a run together, may be float32 rounding ties."""
    return -(-count // VALUES_PER_TIE)


def tie_fault(comparisons: Iterable[Comparison]) -> str:
    """Return what is wrong with the number of rounding ties of a whole run, "" if nothing is.

    Args:
        comparisons: Those of outputs, hidden states and attention weights; not of gradients.
    """
    rows = list(comparisons)
    count, ties = sum(row.count for row in rows), sum(row.ties for row in rows)
    if ties <= tie_limit(count):
        return ""
    return f"{ties} of {count} values differ in float32, at most {tie_limit(count)} may"


def compare_exact(
    a: np.ndarray,
    b: np.ndarray,
    *,
    name: str = "",
    scale: float | None = None,
    noise: float = 0.0,
    float32_bits: bool = True,
    allow_nan: bool = False,
) -> Comparison:
    """Judge two float64 results of what should be one computation.

    ``max |a - b| <= max(2**-40 scale, 4 noise)``, NaN and infinities at the same places, and the
    same float32 bits after rounding but for ties, each of 1 ulp, which are counted here and limited
    over a run by ``tie_fault``.

    Args:
        a: float64, any shape.
        b: float64, the other side.
        name: Of the tensor.
        scale: Largest magnitude to measure against; None is that of both tensors. For a gradient
            it is the largest entry of all gradients of the call.
        noise: Largest change that random rounding errors of float64 make in this tensor.
        float32_bits: Whether a difference above 1 float32 ulp is a fault; False for gradients and
            for an activation alone, whose ties are only counted.
        allow_nan: Whether NaN at the same places of both sides is no fault.

    Raises:
        TypeError: If a side is not float64.
    """
    for side in (a, b):
        if side.dtype != np.float64:
            raise TypeError(f"{name or 'tensor'}: the exact tier judges float64, not {side.dtype}")
    fault = _unlike(a, b) or _placement_fault(a, b, allow_nan)
    if fault:
        return Comparison(name, a.size, float("nan"), 0.0, fault=fault)
    a, b = _flushed(a), _flushed(b)
    scale = max(_largest(a), _largest(b)) if scale is None else scale
    bound = max(EXACT_RELATIVE * scale, 4.0 * noise)
    difference = _largest_difference(a, b)
    with np.errstate(over="ignore"):
        distances = ulp_distance(_flushed(a.astype(np.float32)), _flushed(b.astype(np.float32)))
    ties, furthest = int((distances != 0).sum()), int(distances.max(initial=0))
    if not difference <= bound:
        fault = f"max |a-b| {difference:.3g} > {bound:.3g}"
    elif float32_bits and furthest > 1:
        fault = f"{furthest} float32 ulp apart"
    return Comparison(name, a.size, difference, bound, ties, fault)


def compare_working(
    value: np.ndarray,
    reference: np.ndarray,
    plain: np.ndarray,
    *,
    name: str = "",
    noise: float = 0.0,
) -> Comparison:
    """Judge a result in a working dtype by what plain code reaches in that dtype.

    ``max |value - reference| <= max(4 max |plain - reference|, 4 noise, 8u max |reference|)``; in
    16 bits also ``rms(value - reference) <= 2 rms(plain - reference)``, where a result as close as
    correct rounding, ``u rms(reference)``, always passes. u is the dtype's unit roundoff.

    Args:
        value: float32, bfloat16 or float16, any shape.
        reference: float64, computed from the same inputs after their rounding.
        plain: The framework's plain decomposed code in the dtype of ``value``.
        name: Of the tensor.
        noise: Largest change that random rounding errors of the dtype make in this tensor.

    Raises:
        TypeError: If value and plain have different dtypes, or reference is not float64.
    """
    if value.dtype != plain.dtype or reference.dtype != np.float64:
        raise TypeError(
            f"{name or 'tensor'}: needs one working dtype and a float64 reference, not "
            f"{value.dtype}, {plain.dtype} and {reference.dtype}"
        )
    u = unit_roundoff(value.dtype)
    wide, plain_wide = value.astype(np.float64), plain.astype(np.float64)
    fault = _unlike(wide, reference) or _unlike(plain_wide, reference)
    fault = fault or _placement_fault(wide, reference, allow_nan=False)
    if fault:
        return Comparison(name, value.size, float("nan"), 0.0, fault=fault)
    difference = _largest_difference(wide, reference)
    plain_difference = _largest_difference(plain_wide, reference)
    bound = max(4.0 * max(plain_difference, noise), 8.0 * u * _largest(reference))
    rms, plain_rms = _rms(wide - reference), _rms(plain_wide - reference)
    if not difference <= bound:
        fault = f"max |a-b| {difference:.3g} > {bound:.3g}"
    elif value.dtype.itemsize == 2 and rms > max(2.0 * plain_rms, u * _rms(reference)):
        fault = f"rms error {rms:.3g} > 2 x plain code's {plain_rms:.3g}"
    return Comparison(name, value.size, difference, bound, fault=fault)


def _unlike(a: np.ndarray, b: np.ndarray) -> str:
    if a.shape != b.shape:
        return f"shape {a.shape} != {b.shape}"
    return "" if a.dtype == b.dtype else f"dtype {a.dtype} != {b.dtype}"


def _placement_fault(a: np.ndarray, b: np.ndarray, allow_nan: bool) -> str:
    a_nan, b_nan = np.isnan(a), np.isnan(b)
    if (a_nan != b_nan).any():
        return f"{(a_nan != b_nan).sum()} values are NaN on one side only"
    if a_nan.any() and not allow_nan:
        return f"{a_nan.sum()} values are NaN on both sides"
    infinite = np.isinf(a) | np.isinf(b)
    if (a[infinite] != b[infinite]).any():
        return f"{(a[infinite] != b[infinite]).sum()} values are infinite on one side only"
    return ""


def _flushed(array: np.ndarray) -> np.ndarray:
    return np.where(np.abs(array) < SMALLEST_NORMAL, array.dtype.type(0), array)


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array[np.isfinite(array)]).max(initial=0.0))


def _largest_difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest |a - b| where the two are not the same number, NaN if that is one of them."""
    wide_a, wide_b = a.astype(np.float64).reshape(-1), b.astype(np.float64).reshape(-1)
    same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b))
    return float(np.abs(wide_a[~same] - wide_b[~same]).max(initial=0.0))


def _rms(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(array**2))) if array.size else 0.0
