"""Cutting projections into heads, and joining heads."""

from jax import Array


def split_heads(x: Array, num_heads: int) -> Array:
    """Return (..., T, N * H) as (..., N, T, H)."""
    *leading, T, width = x.shape
    return x.reshape(*leading, T, num_heads, width // num_heads).swapaxes(-3, -2)  # (..., N, T, H)


def merge_heads(x: Array) -> Array:
    """Return (..., N, T, H) as (..., T, N * H)."""
    *leading, N, T, H = x.shape
    return x.swapaxes(-3, -2).reshape(*leading, T, N * H)  # (..., T, N H)
