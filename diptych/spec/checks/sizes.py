"""Checks of sizes, rates, names and shapes, on plain numbers and tuples.

They stand once, here, so that both panels refuse the same input with the same words.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import is_dataclass
from difflib import get_close_matches
from numbers import Real
from types import UnionType
from typing import get_args

Shape = tuple[int, ...]


def check_positive(**sizes: int) -> None:
    """Raise ValueError unless every size is an integer of at least 1."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ValueError(f"{name}={size!r} must be a positive integer")
        _check_counts(name, size)


def check_not_negative(**numbers: int) -> None:
    """Raise ValueError unless every number is an integer of at least 0."""
    for name, number in numbers.items():
        if isinstance(number, bool) or not isinstance(number, int) or number < 0:
            raise ValueError(f"{name}={number!r} must be an integer of at least 0")
        _check_counts(name, number)


def check_divides(**sizes: int) -> None:
    """Raise ValueError unless the first of two named sizes divides the second."""
    (small_name, small), (large_name, large) = sizes.items()
    check_positive(**sizes)
    if large % small:
        raise ValueError(f"{small_name}={small} must divide {large_name}={large}")


def check_equal(name: str, size: int, other_name: str, other: int) -> None:
    """Raise ValueError unless two named sizes are equal."""
    if size != other:
        raise ValueError(f"{name}={size} must equal {other_name}={other}")


def check_rate(**rates: float) -> None:
    """Raise ValueError unless every dropout rate lies in [0, 1)."""
    for name, rate in rates.items():
        if not is_number(rate) or not 0 <= rate < 1:
            raise ValueError(f"{name}={rate!r} must satisfy 0 <= {name} < 1")


def check_above_zero(**numbers: float) -> None:
    """Raise ValueError unless every number is above 0 and finite."""
    for name, number in numbers.items():
        if not is_number(number) or not 0 < number < float("inf"):
            raise ValueError(f"{name}={number!r} must be above 0 and finite")


def check_boolean(**flags: bool) -> None:
    """Raise ValueError unless every value is a boolean."""
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise ValueError(f"{name}={flag!r} must be a boolean")


def check_choice(choices: Collection[str], **values: str) -> None:
    """Raise ValueError unless every value is one of the choices."""
    for name, value in values.items():
        if value not in choices:
            raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}")


def check_flags(number: int, **flags: bool | tuple[bool, ...]) -> None:
    """Raise ValueError unless every value is one boolean, or a tuple of ``number`` of them."""
    for name, value in flags.items():
        each = value if isinstance(value, tuple) and len(value) == number else (value,)
        if not all(isinstance(flag, bool) for flag in each):
            raise ValueError(f"{name}={value!r} must be a boolean or {number} of them")


def check_given(name: str, given: bool, flag: str, wanted: bool) -> None:
    """Raise ValueError unless an argument is given exactly where a flag of the config wants it."""
    if given != wanted:
        raise ValueError(f"{name} is {'given' if given else 'missing'}, but {flag}={wanted}")


def check_stack_length(name: str, length: int, num_layers: int) -> None:
    """Raise ValueError unless there is one of something for every layer."""
    if length != num_layers:
        raise ValueError(f"{name} is of {length} layers, expected num_layers={num_layers}")


def check_kind(kind: type | UnionType, **values: object) -> None:
    """Raise TypeError unless every value is of a kind, such as a config class or one of several.

    A config is of its own class alone: one that is made from it has fields that nothing would read.
    """
    kinds = get_args(kind) or (kind,)
    for name, value in values.items():
        if not isinstance(value, kind) or (is_dataclass(value) and type(value) not in kinds):
            names = " or ".join(k.__name__ for k in kinds)
            raise TypeError(f"{name}={type(value).__name__} must be of {names}")


def check_length(length: int, limit: int, *, name: str = "max_seq_len") -> None:
    """Raise ValueError if a concrete sequence length passes a table or capacity."""
    if length > limit:
        raise ValueError(f"a sequence of {length} positions exceeds {name}={limit}")


def check_not_empty(length: int, what: str) -> None:
    """Raise ValueError if something that reads the first position meets an empty sequence."""
    if not length:
        raise ValueError(f"{what} needs a sequence of at least one position")


def check_offset(offset: int) -> None:
    """Raise ValueError if the position of the first row is negative."""
    if offset < 0:
        raise ValueError(f"offset={offset} must not be negative")


def check_width(shape: Shape, width: int) -> None:
    """Raise ValueError unless the last axis of an input has the width of what is applied to it."""
    if not shape or shape[-1] != width:
        raise ValueError(f"the input has shape {shape}, expected a last axis of {width}")


def check_sequence(shape: Shape, width: int) -> None:
    """Raise ValueError unless an input is a sequence of vectors of the width, (..., T, width)."""
    if len(shape) < 2 or shape[-1] != width:
        raise ValueError(f"the input has shape {shape}, expected (..., T, {width})")


def check_ids_shape(shape: Shape) -> None:
    """Raise ValueError unless ids are sequences, (..., T)."""
    if not shape:
        raise ValueError(f"input_ids have shape {shape}, expected (..., T)")


def check_ids(smallest: int, largest: int, size: int) -> None:
    """Raise IndexError unless all ids between two extremes name a row of a table."""
    for id in (smallest, largest):
        if not 0 <= id < size:
            raise IndexError(f"id {id} is outside a table of {size} rows (0 .. {size - 1})")


def check_floating(**dtypes: str) -> None:
    """Raise TypeError unless every dtype is floating."""
    for name, dtype in dtypes.items():
        if "float" not in dtype:
            raise TypeError(f"{name} is {dtype}, but it must be floating")


def check_one_dtype(*dtypes: str) -> None:
    """Raise TypeError unless an input and the parameters applied to it have one dtype."""
    if len(set(dtypes)) > 1:
        raise TypeError(
            f"input and parameters must have one dtype, not {', '.join(sorted(set(dtypes)))}"
        )


def check_broadcasts(name: str, shape: Shape, target: Shape) -> None:
    """Raise ValueError unless an array broadcasts to the shape of the input."""
    if not broadcasts(shape, target):
        raise ValueError(f"{name} of shape {shape} does not broadcast to the input's {target}")


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


def is_number(value: object) -> bool:
    """Return whether a value is a real number; a boolean is none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ' (nearest: NAME)' for the most similar known name, or ''."""
    close = get_close_matches(name, list(known), n=1)
    return f" (nearest: {close[0]})" if close else ""


def broadcasts(shape: Shape, target: Shape) -> bool:
    """Return whether an array of the shape broadcasts to the target, whose sizes stay."""
    if len(shape) > len(target):
        return False
    tail = target[len(target) - len(shape) :]
    return all(size in (1, expected) for size, expected in zip(shape, tail, strict=True))


def _check_counts(name: str, size: int) -> None:
    """Raise ValueError if a size passes the 32 bits in which JAX counts positions."""
    if size >= 2**31:
        raise ValueError(f"{name}={size} must be below 2**31")
