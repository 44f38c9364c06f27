"""Checks of calls that read and extend a cache."""

import itertools
from collections.abc import Iterable, Sequence

from .sizes import Shape, broadcasts, check_sequence


def check_cache_rows(held: Shape, rows: Shape) -> None:
    """Raise ValueError unless rows (B, ..., T, X) fit the cache's (B, ..., C, X)."""
    if len(held) != len(rows) or held[:-2] != rows[:-2] or held[-1] != rows[-1]:
        raise ValueError(f"new rows of shape {rows} do not fit a cache of shape {held}")


def check_memory(*, memory: bool, key: bool, is_projected: bool = True) -> None:
    """Raise unless a memory is projected and comes without unprojected keys and values."""
    if memory and key:
        raise ValueError("memory= takes the place of key and value: give one of them")
    if memory and not is_projected:
        raise TypeError("memory= takes what project() returned: an array goes to key=")


def check_memory_mask(mask: Shape, rows: Shape) -> None:
    """Raise ValueError unless a mask of a memory has its shape (..., S), size 1 broadcasting."""
    if len(mask) != len(rows) or not broadcasts(mask, rows):
        raise ValueError(f"memory_mask has shape {mask}, expected that of the memory, {rows}")


def check_projected(key: Shape, value: Shape, width: int) -> None:
    """Raise ValueError unless keys and values to be projected fit each other, (..., S, width)."""
    for shape in (key, value):
        check_sequence(shape, width)
    if key != value:
        raise ValueError(f"key and value need the same shape: key {key}, value {value}")


def check_stack_cache(batch_sizes: Sequence[int], inputs: Shape) -> None:
    """Raise ValueError unless the inputs (B, T) or (B, T, D) have the batch size of every cache."""
    for i, size in enumerate(batch_sizes):
        if len(inputs) < 2 or inputs[0] != size:
            raise ValueError(
                f"inputs of shape {inputs} do not follow cache[{i}], which holds {size} samples"
            )


def check_capacity(totals: Iterable[tuple[int, int]], capacity: int) -> None:
    """Raise ValueError unless the held and the new positions of every sample fit."""
    for held, new in totals:
        if held + new > capacity:
            raise ValueError(
                f"a cache of capacity={capacity} that holds {held} positions has no room for {new}"
            )


def check_row_mask(mask: Shape, rows: Shape) -> None:
    """Raise ValueError unless a mask of new rows has their shape (B, T)."""
    if mask != rows:
        raise ValueError(f"key_mask has shape {mask}, expected that of the new rows, {rows}")


def check_right_padding(key_mask: Sequence[Sequence[bool]]) -> None:
    """Raise ValueError unless real rows come first in every sample."""
    for sample, row in enumerate(key_mask):
        if any(after and not before for before, after in itertools.pairwise(row)):
            raise ValueError(
                f"key_mask of sample {sample} hides a row before a real one: in a cached call "
                "padding comes last"
            )


def check_can_cache(*, is_causal: bool) -> None:
    """Raise ValueError unless attention is causal."""
    if not is_causal:
        raise ValueError("a cache needs score.is_causal=True: later rows are not held yet")


def check_cached_call(
    *,
    is_causal: bool,
    batch_size: int,
    query: Shape,
    key_length: int,
    memory: bool = False,
    offset: object = 0,
    segment_ids: object = None,
) -> None:
    """Raise ValueError unless a cached call is causal and without what has no meaning there."""
    check_can_cache(is_causal=is_causal)
    if len(query) != 3 or query[0] != batch_size:
        raise ValueError(f"the query has shape {query}, expected ({batch_size}, T, D) with cache=")
    if memory or key_length != query[1]:
        raise ValueError("with cache= there is no memory, and the keys are the queries' positions")
    if not isinstance(offset, int) or offset:
        raise ValueError(f"offset={offset} beside cache=: the cache counts the positions")
    if segment_ids is not None:
        raise ValueError("segment_ids beside cache=: a cache holds one sequence a sample")
