"""A cast rounds once, to nearest even, and counts what it changed."""

import ml_dtypes
import numpy as np
import pytest

from diptych.tensors.cast import cast_values


@pytest.mark.parametrize(
    ("given", "code", "expected", "counts"),
    [
        ([1 + 2**-8, 1 + 3 * 2**-8], "BF16", [1, 1 + 2**-6], (2, 2, 0, 0)),
        ([1 + 2**-8 + 2**-40], "BF16", [1 + 2**-7], (1, 1, 0, 0)),
        ([-(1 + 2**-8 + 2**-40)], "BF16", [-(1 + 2**-7)], (1, 1, 0, 0)),
        ([1 + 2**-7 + 2**-8 - 2**-40], "BF16", [1 + 2**-7], (1, 1, 0, 0)),
        ([1e39, -1e39, 1e-60, 0.0, -0.0], "F32", [np.inf, -np.inf, 0, 0, -0.0], (5, 3, 2, 1)),
        ([1e39, 1e-60], "BF16", [np.inf, 0], (2, 2, 1, 1)),
        ([65519.0, 65520.0, 1e-8], "F16", [65504, np.inf, 0], (3, 3, 1, 1)),
        ([np.nan, np.inf, 0.5], "F16", [np.nan, np.inf, 0.5], (3, 0, 0, 0)),
        ([2.0**-149], "F32", [2.0**-149], (1, 0, 0, 0)),
    ],
)
def test_casts_round_to_nearest_even_once(given, code, expected, counts):
    values, found = cast_values(np.array(given), code)
    assert np.array_equal(values.astype(np.float64), expected, equal_nan=True)
    assert np.array_equal(np.signbit(values), np.signbit(expected))
    assert (found.values, found.changed, found.became_inf, found.became_zero) == counts


def test_float64_reaches_bfloat16_in_one_rounding():
    random = np.random.default_rng(0)
    values = random.standard_normal(20_000) * 2.0 ** random.integers(-140, 128, 20_000)
    with np.errstate(over="ignore"):
        rounded = values.astype(ml_dtypes.bfloat16).astype(np.float64)
    near_ties = rounded * (1 + 2**-8)
    for given in (values, near_ties, near_ties * (1 + 2**-45), near_ties * (1 - 2**-45)):
        with np.errstate(over="ignore"):
            cast, _ = cast_values(given, "BF16")
        with np.errstate(over="ignore"):
            numbers = np.isfinite(cast) & np.isfinite(given)
            error = np.abs(cast.astype(np.float64)[numbers] - given[numbers])
            for way in (-np.inf, np.inf):
                neighbour = np.nextafter(cast, cast.dtype.type(way)).astype(np.float64)[numbers]
                assert (error <= np.abs(neighbour - given[numbers])).all()
