"""Projections of queries, keys and values that a family stores as one, to ours in that order."""

from collections.abc import Mapping

from ..rules import Chain, Permute, Split, Transform
from ..spec import AttentionConfig


def blocks(attention: AttentionConfig) -> Split:
    """Cut rows ``[q | k | v]``: all heads of queries, then those of keys, then of values."""
    num_heads, num_kv_heads, width = attention.sizes
    return Split((num_heads * width, num_kv_heads * width, num_kv_heads * width))


def groups(attention: AttentionConfig) -> Chain:
    """Cut rows that hold ``[q ... q, k, v]`` for one key/value head after the other.

    Of the rows of 4 query heads and 2 key/value heads, ``q0 q1 k0 v0 q2 q3 k1 v1`` by heads, it
    makes ``q0 q1 q2 q3``, ``k0 k1`` and ``v0 v1``. With as many query heads as key/value heads the
    rows hold (q, k, v) by head.
    """
    num_heads, num_kv_heads, width = attention.sizes
    queries = num_heads // num_kv_heads
    # Their places, in the order of ours: every group's queries, then keys, then values.
    heads = [
        group * (queries + 2) + place
        for places in (range(queries), (queries,), (queries + 1,))
        for group in range(num_kv_heads)
        for place in places
    ]
    # Every head is ``width`` rows.
    order = tuple(head * width + channel for head in heads for channel in range(width))
    return Chain((Permute(order), blocks(attention)))


def both_parts(module: str, transform: Transform) -> Mapping[str, Transform]:
    """Return the same transform for a module's weight and bias."""
    return {f"{module}.{part}": transform for part in ("weight", "bias")}
