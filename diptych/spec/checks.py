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


def check_ids(smallest: int, largest: int, size: int) -> None:
    """Raise IndexError unless all ids between two extremes name a row of a table."""
    for id in (smallest, largest):
        if not 0 <= id < size:
            raise IndexError(f"id {id} is outside a table of {size} rows (0 .. {size - 1})")


def check_one_dtype(*dtypes: str) -> None:
    """Raise TypeError unless an input and the parameters applied to it have one dtype."""
    if len(set(dtypes)) > 1:
        raise TypeError(
            f"input and parameters must have one dtype, not {', '.join(sorted(set(dtypes)))}"
        )


def check_broadcasts(name: str, shape: Shape, target: Shape) -> None:
    """Raise ValueError unless an array broadcasts to the shape of the input."""
    if not _broadcasts(shape, target):
        raise ValueError(f"{name} of shape {shape} does not broadcast to the input's {target}")


def check_attention_shapes(query: Shape, key: Shape, value: Shape) -> None:
    """Raise ValueError unless query (..., N, T, H), key (..., K, S, H), value (..., K, S, V) fit.

    Below rank 4 there is no head axis: (..., T, H), (..., S, H), (..., S, V).
    """
    shapes = f"query {query}, key {key}, value {value}"
    if len(query) < 2 or not len(query) == len(key) == len(value):
        raise ValueError(f"query, key and value need the same rank, at least 2: {shapes}")
    if query[-1] < 1:
        raise ValueError(f"query and key need a width of at least 1: {shapes}")
    if query[-1] != key[-1]:
        raise ValueError(f"query and key need the same width: {shapes}")
    if key[:-1] != value[:-1]:
        raise ValueError(f"key and value need the same shape but for the width: {shapes}")
    leading = -3 if len(query) >= 4 else -2
    if query[:leading] != key[:leading]:
        raise ValueError(f"query and key need the same leading dimensions: {shapes}")
    if len(query) >= 4 and (key[-3] < 1 or query[-3] % key[-3]):
        raise ValueError(f"num_kv_heads={key[-3]} must divide num_heads={query[-3]}: {shapes}")


def aligned_shape(name: str, shape: Shape, query: Shape, key_length: int) -> Shape:
    """Return the shape under which a mask or bias broadcasts to ``query[:-1] + (key_length,)``.

    For a query of rank r >= 4, (..., N, T, H), it may be (T, S), or of rank r - 1 (one per sample:
    a head axis is inserted at -3, also when B == N), or of rank r. For r <= 3 it may have at most
    rank r. Size 1 broadcasts.

    Raises:
        ValueError: If it fits none of these; names both shapes.
    """
    scores = (*query[:-1], key_length)
    rank = len(scores)
    if rank >= 4 and len(shape) == rank - 1:
        aligned = (*shape[:-2], 1, *shape[-2:])
    else:
        aligned = shape
    fits = len(shape) in (2, rank - 1, rank) if rank >= 4 else len(shape) <= rank
    if not fits or not _broadcasts(aligned, scores):
        raise ValueError(
            f"{name} of shape {shape} does not fit scores of shape {scores}: for a query of rank "
            f"{rank} it may be {_allowed(rank)}, size 1 broadcasting"
        )
    return aligned


def per_sample_shape(name: str, shape: Shape, query: Shape, last: Shape) -> Shape:
    """Return the shape under which a per-sample array ``batch + last`` broadcasts over the heads.

    For a query of rank r >= 4, (..., N, T, H), ``batch`` is ``query[:-3]`` and the result has an
    axis of size 1 for the heads between ``batch`` and ``last``. For r <= 3 the array may have at
    most the rank of ``query[:-2] + last``, broadcasting as it stands. Size 1 broadcasts.

    Raises:
        ValueError: If it does not fit; names both shapes.
    """
    heads = len(query) >= 4
    batch = query[:-3] if heads else query[:-2]
    wanted = batch + last
    rank_fits = len(shape) == len(wanted) if heads else len(last) <= len(shape)
    if not (rank_fits and _broadcasts(shape, wanted)):
        raise ValueError(f"{name} has shape {shape}, expected {wanted} for query {query}")
    return shape[: len(batch)] + (1,) + shape[len(batch) :] if heads else shape


def window_sides(window: int | tuple[int, int], is_causal: bool) -> tuple[int, int]:
    """Return the keys visible to the left and right of a query's own key.

    Raises:
        ValueError: If a side is negative, an int is below 1, or an int comes without causal.
    """
    if isinstance(window, int):
        if window < 1:
            raise ValueError(
                f"window={window} must be at least 1 (a query always sees its own key)"
            )
        if not is_causal:
            raise ValueError(f"window={window} without is_causal: say (left, right)")
        return window - 1, 0
    left, right = window
    if left < 0 or right < 0:
        raise ValueError(f"window={tuple(window)} must not be negative on either side")
    return left, right


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


def _broadcasts(shape: Shape, target: Shape) -> bool:
    if len(shape) > len(target):
        return False
    tail = target[len(target) - len(shape) :]
    return all(size in (1, wanted) for size, wanted in zip(shape, tail, strict=True))


def _allowed(rank: int) -> str:
    if rank < 4:
        return f"of rank {rank} at most"
    return f"(T, S), of rank {rank - 1} (one per sample) or of rank {rank}"
