"""Projections of queries, keys and values that a family stores as one, to ours in that order."""

from collections.abc import Mapping

from ..rules.transforms import Chain, Permute, Split, Transform
from ..spec import AttentionConfig


def blocks(attention: AttentionConfig) -> Split:
    """Cut ``[q | k | v]``."""
    num_heads, num_kv_heads, width = attention.sizes
    return Split((num_heads * width, num_kv_heads * width, num_kv_heads * width))


def groups(attention: AttentionConfig) -> Chain:
    """Cut ``[q ... q, k, v]`` for every key/value head; with as many query heads, (q, k, v)."""
    num_heads, num_kv_heads, width = attention.sizes
    queries = num_heads // num_kv_heads
    heads = [
        group * (queries + 2) + place
        for places in (range(queries), (queries,), (queries + 1,))
        for group in range(num_kv_heads)
        for place in places
    ]
    order = tuple(head * width + channel for head in heads for channel in range(width))
    return Chain((Permute(order), blocks(attention)))


def both_parts(module: str, transform: Transform) -> Mapping[str, Transform]:
    """Return the same transform for a module's weight and bias."""
    return {f"{module}.{part}": transform for part in ("weight", "bias")}
