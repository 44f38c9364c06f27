"""Keys and values of earlier positions, as values of fixed capacity that are never changed.

B batch   T new positions   C capacity (slots)   S keys attended over   X width of a row
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from diptych.spec import RotaryTable, ScoreConfig
from diptych.spec.checks.attention import check_mask_dtype, window_sides
from diptych.spec.checks.cache import (
    check_cache_rows,
    check_capacity,
    check_right_padding,
    check_row_mask,
)
from diptych.spec.checks.sizes import check_not_negative, check_one_dtype, check_positive

from ._concrete import is_concrete
from ._dtype import dtype_name
from .visibility import align


class Cache(NamedTuple):
    """Rows by position: slot c holds position c.

    Attributes:
        entries: Arrays (B, ..., C, X): keys and values, or what they are made from.
        length: int32 (B,), the number of positions held for each sample.
    """

    entries: tuple[Tensor, ...]
    length: Tensor


class RollingCache(NamedTuple):
    """The last C rows: slot c holds the latest position p with ``p mod C == c``.

    Attributes:
        entries: Arrays (B, ..., C, X): keys and values, or what they are made from.
        length: int32 (B,), the number of positions seen for each sample.
    """

    entries: tuple[Tensor, ...]
    length: Tensor


class CachedRows(NamedTuple):
    """What a call attends over.

    Attributes:
        entries: Arrays (B, ..., S, X).
        queries: Positions (B, T).
        keys: Positions (B, S), -1 where there is no key.
        visible: Boolean (B, T, S), where a query may attend.
        fits: Boolean (B, T), false for real rows past the capacity and for samples with padding
            before a row.
        cache: The cache after the call.
    """

    entries: tuple[Tensor, ...]
    queries: Tensor
    keys: Tensor
    visible: Tensor
    fits: Tensor
    cache: Cache | RollingCache

    def refuse(self, attended: Tensor) -> Tensor:
        """Return what was attended to, (B, N, T, V), with NaN for rows past the capacity."""
        return torch.where(self.fits[:, None, :, None], attended, float("nan"))


def empty_cache(
    like: Tensor,
    batch_size: int,
    capacity: int,
    shapes: tuple[tuple[int, ...], ...],
    score: ScoreConfig,
    rotary: RotaryTable | None,
) -> Cache | RollingCache:
    """Return a cache without positions.

    It rolls within a causal window, unless frequencies depend on how long the sequence gets.

    Args:
        like: Has the dtype of the entries.
        batch_size: B.
        capacity: C, where the cache does not roll.
        shapes: Sizes (..., X) of each entry's rows, before and after the axis of the slots.
        score: Whose window decides.
        rotary: Whose scaling decides.

    Returns:
        Zeros (B, ..., C, X), and lengths of 0.

    Raises:
        ValueError: If a size is refused.
    """
    check_not_negative(batch_size=batch_size)
    check_positive(capacity=capacity)
    kind: type[Cache | RollingCache] = Cache
    # All slots from the start: a cache that grew would be traced anew at every token.
    slots = capacity
    if score.window is not None and not (rotary and rotary.depends_on_length):
        left = window_sides(score.window, score.is_causal)[0]
        if left + 1 < capacity:
            kind, slots = RollingCache, left + 1
    options: Any = {"dtype": like.dtype, "device": like.device}
    entries = tuple(
        torch.zeros(batch_size, *shape[:-1], slots, shape[-1], **options) for shape in shapes
    )
    return kind(entries, torch.zeros(batch_size, dtype=torch.int32, device=like.device))


def join_masks(visible: Tensor, mask: Tensor | None, query: Tensor) -> Tensor:
    """Return where a cache (B, T, S) and a mask both allow it, (B, 1 or N, T, S)."""
    visible = visible[:, None]  # (B, 1, T, S)
    if mask is None:
        return visible
    check_mask_dtype(mask=dtype_name(mask))
    return visible & (align("mask", mask, query, visible.shape[-1]) != 0)


def append_rows(
    cache: Cache | RollingCache,
    rows: tuple[Tensor, ...],
    *,
    key_mask: Tensor | None = None,
    window: int | tuple[int, int] | None = None,
) -> CachedRows:
    """Put rows at the next positions of every sample; the cache that was given is not changed.

    Args:
        cache: Positions so far.
        rows: Arrays (B, ..., T, X), one for each of the cache's entries.
        key_mask: Boolean or integer (B, T), which rows are real: those before the padding.
        window: Visible keys (left, right) of a query's own; an int w means (w - 1, 0).

    Returns:
        What a query at the new positions attends over: the slots, or, where old rows may be
        overwritten, the old slots and then the new rows.

    Raises:
        ValueError: If the batch sizes differ, padding comes before a row, or the rows exceed the
            capacity. Where numbers cannot be looked at (compiled, vmap), rows past the capacity are
            not held, padding before a row is taken for one, and ``fits`` says so.
    """
    C, T = cache.entries[0].shape[-2], rows[0].shape[-2]
    for entry, row in zip(cache.entries, rows, strict=True):
        check_cache_rows(tuple(entry.shape), tuple(row.shape))
        check_one_dtype(dtype_name(entry), dtype_name(row))
    left = None if window is None else window_sides(window, True)[0]
    count = _count(cache, T, key_mask)
    length, new_length = cache.length, cache.length + count
    steps = torch.arange(T, dtype=torch.int32, device=length.device)
    slots = torch.arange(C, dtype=torch.int32, device=length.device)
    query_positions = length[:, None] + steps  # (B, T)
    is_real = steps < count[:, None]  # (B, T)
    # Real rows are the first ones, unless padding stands before one of them.
    in_order = True if key_mask is None else ((key_mask != 0) == is_real).all(-1)[:, None]
    if isinstance(cache, RollingCache):
        # The old slots come along, as a new row may replace one that a query still sees.
        old, new = _latest(slots, length, C), _latest(slots, new_length, C)
        entries = tuple(
            torch.cat([held, row], -2) for held, row in zip(cache.entries, rows, strict=True)
        )
        is_new = torch.where(is_real, query_positions, -1)  # (B, T)
        key_positions = torch.cat([old, is_new], -1)  # (B, C + T)
        held = _write(cache.entries, rows, new - length[:, None])
        visible = visible_positions(query_positions, key_positions, left=left)
        fits = (query_positions >= 0) & in_order
        return CachedRows(
            entries, query_positions, key_positions, visible, fits, RollingCache(held, new_length)
        )
    new_length = new_length.clamp(max=C)
    source = slots - length[:, None]  # (B, C)
    held = _write(cache.entries, rows, torch.where(source < count[:, None], source, -1))
    key_positions = torch.where(slots < new_length[:, None], slots, -1)
    visible = visible_positions(query_positions, key_positions, left=left)
    # Where numbers cannot be looked at, NaN says what an error would say.
    fits = ((query_positions < C) | ~is_real) & in_order
    after = Cache(held, new_length)
    return CachedRows(held, query_positions, key_positions, visible, fits, after)


def visible_positions(
    query_positions: Tensor, key_positions: Tensor, *, left: int | None = None
) -> Tensor:
    """Return the causal mask by positions, also within a window.

    Args:
        query_positions: (B, T).
        key_positions: (B, S), -1 where there is no key.
        left: Number of visible keys before a query's own; None means all.

    Returns:
        Boolean (B, T, S).
    """
    queries, keys = query_positions[..., :, None], key_positions[..., None, :]
    visible = (keys >= 0) & (keys <= queries)
    return visible if left is None else visible & (queries - keys <= left)  # (B, T, S)


def _count(cache: Cache | RollingCache, T: int, key_mask: Tensor | None) -> Tensor:
    """Return the number of real rows of every sample, int32 (B,)."""
    length = cache.length
    if key_mask is None:
        count = torch.full_like(length, T)
    else:
        check_mask_dtype(key_mask=dtype_name(key_mask))
        check_row_mask(tuple(key_mask.shape), (length.shape[0], T))
        count = (key_mask != 0).sum(-1).to(torch.int32)
        if is_concrete(key_mask):
            check_right_padding((key_mask != 0).tolist())
    if isinstance(cache, Cache) and is_concrete(length) and is_concrete(count):
        totals = zip(length.tolist(), count.tolist(), strict=True)
        check_capacity(totals, cache.entries[0].shape[-2])
    return count


def _latest(slots: Tensor, length: Tensor, C: int) -> Tensor:
    """Return the position that each slot of a rolling cache holds, below 0 for none, (B, C)."""
    last = length[:, None] - 1
    # The last position before the length that falls on the slot, modulo C.
    positions = last - (last - slots) % C
    return torch.where(positions >= 0, positions, -1)


def _write(
    entries: tuple[Tensor, ...], rows: tuple[Tensor, ...], source: Tensor
) -> tuple[Tensor, ...]:
    """Return entries with the row of every slot's source index, where that is not below 0."""
    T = rows[0].shape[-2]
    if not T:
        return entries
    written = []
    for held, row in zip(entries, rows, strict=True):
        shape = (source.shape[0], *[1] * (held.ndim - 3), source.shape[1], 1)
        index = source.reshape(shape)  # (B, 1, .., C, 1)
        # Slots take rows, rows are not put into slots: padding then has nowhere to go.
        taken = torch.take_along_dim(row, index.clamp(0, T - 1).long(), -2)
        written.append(torch.where(index >= 0, taken, held))  # (B, .., C, X)
    return tuple(written)
