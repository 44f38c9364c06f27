"""Checks of what attention is given: shapes, dtypes by name, windows.

B batch   T query positions   S key positions
N query heads   K key/value heads   H head width   V value width
"""

from collections.abc import Collection, Sequence

from .sizes import Shape, broadcasts

FLOATING_DTYPES = ("float64", "float32", "bfloat16", "float16")


def check_sinks(sinks: Shape, query: Shape) -> None:
    """Raise ValueError unless there is one sink per head, axis -3 of the query (rank 2: none)."""
    heads = query[-3:-2]
    if sinks != heads:
        raise ValueError(f"sinks has shape {sinks}, expected {heads} for query {query}")


def check_same_lengths(name: str, query_length: int, key_length: int) -> None:
    """Raise ValueError unless one array can serve both queries and keys."""
    if query_length != key_length:
        raise ValueError(
            f"{name} must be a pair (of queries, of keys) when there are {query_length} "
            f"queries and {key_length} keys"
        )


def check_pair(name: str, members: Sequence[object]) -> None:
    """Raise ValueError unless there is one array for the queries and one for the keys."""
    if len(members) != 2 or any(member is None for member in members):
        given = f"{len(members)} members" if len(members) != 2 else "a member that is None"
        raise ValueError(f"{name} has {given}, expected a pair (of queries, of keys)")


def check_positions(name: str, shape: Shape, rows: Shape) -> None:
    """Raise ValueError unless positions are (T,) or (..., T) for rows (..., T)."""
    if not shape or not broadcasts(shape, rows):
        raise ValueError(f"{name} has shape {shape}, expected {rows[-1:]} or {rows}")


def check_offset_size(offset: object) -> None:
    """Raise ValueError if an int passes what 32 bits hold beside the length of a sequence."""
    if isinstance(offset, int) and abs(offset) >= 2**30:
        raise ValueError(f"offset={offset} must lie between -2**30 and 2**30")


def check_rotated(pairs: int, x: Shape, positions: Shape) -> None:
    """Raise ValueError unless an input (..., T, H) has the channels to rotate, and T positions."""
    if len(x) < 2 or x[-1] < 2 * pairs:
        raise ValueError(f"the input has shape {x}, expected (..., T, H) with H >= {2 * pairs}")
    if not positions or positions[-1] not in (1, x[-2]):
        raise ValueError(f"positions has shape {positions}, expected a last axis of {x[-2]}")


def check_keep(keep: Shape, x: Shape) -> None:
    """Raise ValueError unless a keep mask has the shape of what it is applied to."""
    if keep != x:
        raise ValueError(f"keep has shape {keep}, expected that of the input, {x}")


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
    rank r. Size 1 broadcasts; the result has the axes T and S.

    Raises:
        ValueError: If it fits none of these; names both shapes.
    """
    scores = (*query[:-1], key_length)
    rank = len(scores)
    if rank >= 4 and len(shape) == rank - 1:
        aligned = (*shape[:-2], 1, *shape[-2:])
    else:
        aligned = (1,) * (2 - len(shape)) + shape
    fits = len(shape) in (2, rank - 1, rank) if rank >= 4 else len(shape) <= rank
    if not fits or not broadcasts(aligned, scores):
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
    has_heads = len(query) >= 4
    batch = query[:-3] if has_heads else query[:-2]
    expected = batch + last
    rank_fits = len(shape) == len(expected) if has_heads else len(shape) >= len(last)
    if not (rank_fits and broadcasts(shape, expected)):
        raise ValueError(f"{name} has shape {shape}, expected {expected} for query {query}")
    return (*shape[: len(batch)], 1, *shape[len(batch) :]) if has_heads else shape


def window_sides(window: int | tuple[int, int], is_causal: bool) -> tuple[int, int]:
    """Return the keys visible to the left and right of a query's own key.

    Raises:
        ValueError: If it is neither an int nor a pair of them, a side is negative, an int is below
            1, or an int comes without causal.
    """
    sides = window if isinstance(window, tuple) and len(window) == 2 else (window,)
    if any(isinstance(side, bool) or not isinstance(side, int) for side in sides):
        raise ValueError(f"window={window!r} must be an int or a pair (left, right) of ints")
    if isinstance(window, int):
        if window < 1:
            raise ValueError(
                f"window={window} must be at least 1 (a query always sees its own key)"
            )
        if not is_causal:
            raise ValueError(f"window={window} without is_causal: say (left, right)")
        window = window - 1, 0
    left, right = window
    if left < 0 or right < 0:
        raise ValueError(f"window={window} must not be negative on either side")
    # JAX counts positions in 32 bits and refuses a larger number.
    return min(left, 2**31 - 1), min(right, 2**31 - 1)


def check_combined_masks(shapes: Collection[Shape]) -> None:
    """Raise ValueError unless masks combine without guessing what their axes mean.

    Masks of rank 2, (T, S), fit any other; the rest must have one rank, since beside (B, N, T, S)
    a mask of rank 3 may be meant per sample or per head.
    """
    listed = ", ".join(map(str, shapes))
    if not shapes:
        raise ValueError("combine_masks needs at least one mask")
    if len({len(shape) for shape in shapes} - {2}) > 1:
        raise ValueError(f"masks of shapes {listed} are ambiguous: give all but (T, S) one rank")
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    if any(len(set(sizes) - {1}) > 1 for sizes in zip(*padded, strict=True)):
        raise ValueError(f"masks of shapes {listed} do not broadcast to one shape")


def check_mask_dtype(**dtypes: str) -> None:
    """Raise TypeError unless every dtype, by its name alone, is boolean or integer."""
    for name, dtype in dtypes.items():
        if not _counts(dtype):
            raise TypeError(
                f"{name} is {dtype}, but a mask is boolean or integer, true where a query may "
                f"attend: pass {name} != 0 if it means that, or bias= if it is added to the scores"
            )


def check_bias_dtype(dtype: str) -> None:
    """Raise TypeError unless bias is floating: a mask would hide nothing there."""
    if dtype not in FLOATING_DTYPES:
        raise TypeError(
            f"bias is {dtype}, but it is added to the scores and must be one of "
            f"{', '.join(FLOATING_DTYPES)}: a mask goes to mask="
        )


def check_integer_dtype(**dtypes: str) -> None:
    """Raise TypeError unless every dtype is integer."""
    for name, dtype in dtypes.items():
        if not _counts(dtype) or dtype == "bool":
            raise TypeError(f"{name} is {dtype}, but it must be integer")


def check_attention_dtypes(**dtypes: str) -> None:
    """Raise TypeError unless all dtypes are the same floating one."""
    if len(set(dtypes.values())) > 1 or not set(dtypes.values()) <= set(FLOATING_DTYPES):
        listed = ", ".join(f"{name} is {dtype}" for name, dtype in dtypes.items())
        raise TypeError(f"{listed}: they need one dtype of {', '.join(FLOATING_DTYPES)}")


def _allowed(rank: int) -> str:
    if rank < 4:
        return f"of rank {rank} at most"
    return f"(T, S), of rank {rank - 1} (one per sample) or of rank {rank}"


def _counts(dtype: str) -> bool:
    return dtype == "bool" or dtype.removeprefix("u").startswith("int")
