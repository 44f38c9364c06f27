"""Checks of sizes, rates, names and shapes, on plain numbers and tuples.

They stand once, here, so that both panels refuse the same input with the same words.
"""

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches

Shape = tuple[int, ...]


def check_positive(**sizes: int) -> None:
    """Raise ValueError unless every size is an integer of at least 1."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name}={size!r} must be a positive integer")


def check_divides(**sizes: int) -> None:
    """Raise ValueError unless the first of two named sizes divides the second."""
    (small_name, small), (large_name, large) = sizes.items()
    check_positive(**sizes)
    if large % small:
        raise ValueError(f"{small_name}={small} must divide {large_name}={large}")


def check_rate(**rates: float) -> None:
    """Raise ValueError unless every dropout rate lies in [0, 1)."""
    for name, rate in rates.items():
        if not 0 <= rate < 1:
            raise ValueError(f"{name}={rate!r} must satisfy 0 <= {name} < 1")


def check_above_zero(**numbers: float) -> None:
    """Raise ValueError unless every number is above 0 and finite."""
    for name, number in numbers.items():
        if not 0 < number < float("inf"):
            raise ValueError(f"{name}={number!r} must be above 0 and finite")


def check_choice(choices: Collection[str], **values: str) -> None:
    """Raise ValueError unless every value is one of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}")


def check_length(length: int, limit: int, *, name: str = "max_seq_len") -> None:
    """Raise ValueError if a concrete sequence length passes a table or capacity."""
    if length > limit:
        raise ValueError(f"a sequence of {length} positions exceeds {name}={limit}")


def check_names_and_shapes(
    expected: Mapping[str, Shape], given: Mapping[str, Shape], *, what: str
) -> None:
    """Raise ValueError, listing every fault, unless two tables of shapes by name are equal."""
    faults = [f"{name}: missing" for name in expected.keys() - given.keys()]
    faults += [
        f"{name}: unexpected{nearest(name, expected)}" for name in given.keys() - expected.keys()
    ]
    faults += [
        f"{name}: shape {tuple(given[name])}, expected {tuple(expected[name])}"
        for name in expected.keys() & given.keys()
        if tuple(expected[name]) != tuple(given[name])
    ]
    if faults:
        raise ValueError(f"{what}: " + "; ".join(sorted(faults)))


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ' (nearest: NAME)' for the most similar known name, or ''."""
    close = get_close_matches(name, list(known), n=1)
    return f" (nearest: {close[0]})" if close else ""
