"""The ledger is true: every entry still differs, and by no more than it says."""

import dataclasses

import pytest

from parity_tests.house.known_differences import KNOWN_DIFFERENCES, KnownDifference


def check(entry: KnownDifference) -> None:
    size = entry.measure()
    assert size > 0, f"no longer differs, strike it: {entry.what}"
    assert size <= entry.bound, f"{size} > {entry.bound}: {entry.what}"


@pytest.mark.parametrize("entry", KNOWN_DIFFERENCES, ids=lambda entry: entry.measure.__name__)
def test_entry(entry):
    check(entry)


def test_an_entry_that_no_longer_holds_fails():
    entry = KNOWN_DIFFERENCES[0]
    with pytest.raises(AssertionError, match="strike it"):
        check(dataclasses.replace(entry, measure=lambda: 0.0))
    with pytest.raises(AssertionError, match=r"2\.0 > "):
        check(dataclasses.replace(entry, measure=lambda: 2.0))
