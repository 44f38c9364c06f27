"""The pairs of the two panels stay readable side by side."""

import pytest

from parity_tests.house.pair_diff import diff_lines, pair_diffs

FUNCTIONAL = [pair for pair in pair_diffs() if pair.name.startswith("functional")]


OVER_A_THIRD = {
    "functional/_concrete.py": "asks the framework whether a number can be looked at",
    "functional/_draw.py": "draws from the framework's generator, in JAX by a key",
    "functional/_dtype.py": "asks the framework for a dtype's name",
}


@pytest.mark.parametrize("pair", FUNCTIONAL, ids=lambda pair: pair.name)
def test_a_functional_pair_differs_in_less_than_a_third(pair):
    if pair.name in OVER_A_THIRD:
        assert pair.share >= 1 / 3, f"strike it from OVER_A_THIRD: {pair}"
    else:
        assert pair.share < 1 / 3, str(pair)


def test_every_pair_is_counted():
    assert {"functional/attention.py", "functional/mask.py"} <= {pair.name for pair in FUNCTIONAL}


def test_lines_are_counted_on_the_longer_side():
    assert diff_lines("", "a\nb\nc", "a\nx\ny\nc").differing == 2
    assert diff_lines("", "a\nb\nc", "a\nb\nc").differing == 0
    assert diff_lines("", "a\nb\nc\nd", "a\nd").share == 0.5
