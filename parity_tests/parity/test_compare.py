"""The judge is judged first: what must pass beside what must fail."""

import ml_dtypes
import numpy as np
import pytest

from diptych.parity.compare import (
    HEADER,
    Comparison,
    compare_exact,
    compare_working,
    tie_fault,
    tie_limit,
)
from diptych.tensors.ulp import ulp_distance, unit_roundoff
from parity_tests.support.gain import compare_gain

NAN, INF = float("nan"), float("inf")
BF16 = np.dtype(ml_dtypes.bfloat16)
FP8 = np.dtype(ml_dtypes.float8_e4m3fn)


EXACT_CASES = {
    "equal": ([1.0, -2.0], [1.0, -2.0], ""),
    "float64 rounding": ([1.0, 3.0], [1.0, 3.0 + 2**-45], ""),
    "just over the bound": ([1.0, 4.0], [1.0 + 2**-37, 4.0], "max |a-b| 7.28e-12 > 3.64e-12"),
    "nan against a number": ([1.0, NAN], [1.0, 7.0], "1 values are NaN on one side only"),
    "number against nan": ([1.0, 7.0], [1.0, NAN], "1 values are NaN on one side only"),
    "nan against nan": ([NAN], [NAN], "1 values are NaN on both sides"),
    "inf against a number": ([INF], [1e308], "1 values are infinite on one side only"),
    "inf against -inf": ([INF], [-INF], "1 values are infinite on one side only"),
    "inf against inf": ([INF, 1.0], [INF, 1.0], ""),
    "nan against inf": ([NAN], [INF], "1 values are NaN on one side only"),
    "cancelling errors": ([1.0, -1.0], [0.0, 0.0], "max |a-b| 1 > 9.09e-13"),
    "denormals": ([2.0**-127, 0.0], [0.0, -(2.0**-1070)], ""),
    "smallest normal": ([2.0**-126], [0.0], "max |a-b| 1.18e-38 > 1.07e-50"),
    "shape": ([1.0], [[1.0]], "shape (1,) != (1, 1)"),
    "small beside large": ([1.0, 2**-40], [1.0, 2**-40 + 2**-62], "2 float32 ulp apart"),
    "empty": ([], [], ""),
}


@pytest.mark.parametrize("name", EXACT_CASES)
def test_exact(name):
    a, b, fault = EXACT_CASES[name]
    result = compare_exact(np.array(a), np.array(b), name=name)
    assert result.fault == fault
    assert result.ok == (fault == "")


def test_exact_counts_ties_of_one_ulp():
    middle = 1.0 + 2.0**-24
    a, b = np.array([middle, 1.0]), np.array([np.nextafter(middle, 2), 1.0])
    result = compare_exact(a, b)
    assert (result.ties, result.verdict) == (1, "equal")


def test_exact_gradient_is_measured_against_the_whole_call():
    a, b = np.array([1e-9, 0.0]), np.array([0.0, 2e-17])
    assert not compare_exact(a, b).ok
    assert not compare_exact(a, b, scale=1e6).ok
    result = compare_exact(a, b, scale=1e6, float32_bits=False)
    assert result.ok
    assert result.ties == 2
    assert not compare_exact(a, b, scale=1.0, float32_bits=False).ok


def test_exact_noise_widens_and_nan_is_allowed_only_when_asked():
    a, b = np.array([1.0, NAN]), np.array([1.0 + 2**-30, NAN])
    assert compare_exact(a, b, noise=2**-31, allow_nan=True).ok
    assert not compare_exact(a, b, noise=2**-33, allow_nan=True).ok
    assert not compare_exact(a, b, noise=2**-31).ok


def test_exact_refuses_a_narrower_dtype():
    with pytest.raises(TypeError, match="scores: the exact tier judges float64, not float32"):
        compare_exact(np.zeros(1), np.zeros(1, np.float32), name="scores")


def test_ties_of_a_run():
    rows = [Comparison("a", 1_500_000, 0.0, 0.0, ties=1), Comparison("b", 1, 0.0, 0.0, ties=1)]
    assert [tie_limit(count) for count in (0, 1, 1_000_000, 1_000_001)] == [0, 1, 1, 2]
    assert tie_fault(rows) == ""
    assert tie_fault([*rows, rows[1]]) == "3 of 1500002 values differ in float32, at most 2 may"


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_working(dtype):
    random = np.random.default_rng(0)
    reference = random.normal(size=(40, 30))
    plain = reference.astype(dtype)
    assert compare_working(plain, reference, plain).ok
    u = unit_roundoff(np.dtype(dtype))
    off = (reference * (1 + 2.5 * u * np.sign(random.normal(size=reference.shape)))).astype(dtype)
    assert compare_working(off, reference, plain).ok == (dtype is np.float32)
    far = (reference + 20 * u * np.abs(reference).max()).astype(dtype)
    assert "max |a-b|" in compare_working(far, reference, plain).fault
    hole = plain.copy()
    hole[3, 4] = NAN
    assert "NaN on one side" in compare_working(hole, reference, plain).fault
    assert "shape" in compare_working(plain[:1], reference, plain).fault


def test_working_follows_what_plain_code_reaches():
    reference = np.array([1.0, 1.0])
    plain = np.array([1.0, 1.0 - 2**-10], np.float32)
    assert compare_working(np.array([1 + 2**-9, 1], np.float32), reference, plain).ok
    assert not compare_working(np.array([1 + 2**-7, 1], np.float32), reference, plain).ok


def test_working_refuses_mixed_dtypes():
    with pytest.raises(TypeError, match="needs one working dtype and a float64 reference"):
        compare_working(np.zeros(1, np.float16), np.zeros(1), np.zeros(1, np.float32))


def test_gain_finds_a_bias_that_single_errors_hide():
    random = np.random.default_rng(0)
    references = [random.normal(size=500) for _ in range(64)]
    rounded = [reference.astype(BF16) for reference in references]
    assert compare_gain(rounded, references).ok
    truncated = [
        (np.float32(r).view(np.uint32) & 0xFFFF0000).view(np.float32).astype(BF16)
        for r in (reference.astype(np.float32) for reference in references)
    ]
    assert "mean gain" in compare_gain(truncated, references).fault


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [
        (1.0, np.nextafter(1.0, 2), 1),
        (0.0, -0.0, 0),
        (5e-324, -5e-324, 2),
        (NAN, NAN, 0),
        (NAN, 1.0, 2**64 - 1),
        (-INF, INF, 2 * 0x7FF0000000000000),
    ],
)
def test_ulp_distance(a, b, distance):
    assert int(ulp_distance(np.array([a]), np.array([b]))[0]) == distance


def test_ulp_distance_of_narrow_dtypes_and_misuse():
    for dtype in (np.float32, np.float16, BF16, FP8):
        near = np.array([1.0, 1.0 + 2 * unit_roundoff(np.dtype(dtype))], dtype)
        assert ulp_distance(near[:1], near[1:]).tolist() == [1]
    with pytest.raises(TypeError, match="one dtype"):
        ulp_distance(np.zeros(1), np.zeros(1, np.float32))
    with pytest.raises(ValueError, match="one shape"):
        ulp_distance(np.zeros(1), np.zeros(2))


def test_a_comparison_prints_under_its_header():
    line = str(compare_exact(np.ones(3), np.ones(3), name="layers.0"))
    assert line.split() == ["layers.0", "3", "0.00e+00", "9.09e-13", "0", "identical"]
    assert line.index("identical") == HEADER.index("verdict")
