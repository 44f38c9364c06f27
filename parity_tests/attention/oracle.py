"""Attention in numpy float64, with gradients written by hand: the third opinion beside two panels.

Written from the formulas of the papers, loops and broadcasting only, sharing no code with a panel.
B batch, T query positions, S key positions, N query heads, K key/value heads, H head width.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class OracleAttention:
    """What attention gives, and the way back.

    Attributes:
        output: (..., N, T, V).
        weights: (..., N, T, S), after the softmax, before dropout.
        visible: Boolean (..., N, T, S).
        backward: Takes the gradients of output and (optionally) weights; returns those of
            ``query, key, value`` and, where they were given, ``bias, sinks``, each in the shape
            of the argument.
    """

    output: Array
    weights: Array
    visible: Array
    backward: Callable[..., dict[str, Array]]


def attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    mask: Array | None = None,
    key_mask: Array | None = None,
    bias: Array | None = None,
    is_causal: bool = False,
    offset: int | Array = 0,
    window: int | tuple[int, int] | None = None,
    segment_ids: Array | tuple[Array, Array] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    sinks: Array | None = None,
    dropout: float = 0.0,
    keep: Array | None = None,
) -> OracleAttention:
    """Compute ``softmax(softcap(scale q.k) + bias) v`` over the visible keys in float64.

    Args:
        query: (..., N, T, H), or (..., T, H) below rank 4.
        key: (..., K, S, H), or (..., S, H).
        value: (..., K, S, V), or (..., S, V).
        mask: Boolean or integer, not 0 = may attend; (T, S), one per sample, or full rank.
        key_mask: (B, S).
        bias: Added to the scores; shapes as ``mask``; -inf hides.
        is_causal: Query i sees keys 0 .. i + offset.
        offset: An int, or one int per sample.
        window: Keys (left, right) of a query's own; an int w is (w - 1, 0).
        segment_ids: (B, T), or the pair (B, T), (B, S); equal ids see each other.
        scale: Factor on q.k; None is 1 / sqrt(H).
        softcap: c in c tanh(score / c).
        sinks: (N,), one more logit in each head's denominator.
        dropout: Rate with which ``keep`` was drawn.
        keep: Boolean (..., N, T, S), the weights that dropout keeps.
    """
    query, key, value = (np.asarray(x, np.float64) for x in (query, key, value))
    has_heads = query.ndim >= 4
    group = query.shape[-3] // key.shape[-3] if has_heads else 1
    scores_shape = (*query.shape[:-1], key.shape[-2])
    scale = query.shape[-1] ** -0.5 if scale is None else scale

    bias_full = np.zeros(scores_shape)
    if bias is not None:
        bias_full = bias_full + _align(np.asarray(bias, np.float64), len(scores_shape))
    visible = bias_full != -np.inf
    if mask is not None:
        visible = visible & (_align(np.asarray(mask), len(scores_shape)) != 0)
    visible = visible & _structure(
        scores_shape, has_heads, key_mask, is_causal, offset, window, segment_ids
    )

    seen = _sum_groups(visible.astype(int), group).sum(axis=-2) > 0
    keys = _repeat(np.where(seen[..., None], key, 0.0), group)
    values = _repeat(np.where(seen[..., None], value, 0.0), group)
    capped, cap_slope = _softcap(scale * _dot(query, keys), softcap)
    scores = np.where(visible, capped + bias_full, -np.inf)
    sink = None if sinks is None else np.asarray(sinks, np.float64)[:, None, None]
    weights, sink_weights = _softmax(scores, visible, sink)
    kept = np.ones(scores_shape) if keep is None else np.asarray(keep) / (1.0 - dropout)

    def backward(d_output: Array, d_weights: Array | float = 0.0) -> dict[str, Array]:
        d_weight = kept * _dot(d_output, values) + d_weights
        mean = (weights * d_weight).sum(axis=-1, keepdims=True)
        d_scores = weights * (d_weight - mean)
        d_products = scale * d_scores * np.where(visible, cap_slope, 0.0)
        gradients = {
            "query": d_products @ keys,
            "key": _sum_groups(_transposed(d_products) @ query, group),
            "value": _sum_groups(_transposed(weights * kept) @ d_output, group),
        }
        if bias is not None:
            gradients["bias"] = _sum_to(d_scores, _align(np.asarray(bias), d_scores.ndim).shape)
            gradients["bias"] = gradients["bias"].reshape(np.shape(bias))
        if sinks is not None:
            d_sink = -(sink_weights * mean)
            gradients["sinks"] = _sum_to(d_sink, (d_sink.shape[-3], 1, 1)).reshape(-1)
        return gradients

    return OracleAttention((weights * kept) @ values, weights, visible, backward)


def _structure(shape, has_heads, key_mask, is_causal, offset, window, segment_ids) -> Array:
    """What causality, window, padding and segments leave visible, broadcast to ``shape``."""
    T, S = shape[-2:]
    visible = np.ones(shape, bool)
    own = np.arange(T)[:, None] + _per_sample(np.asarray(offset), has_heads, 0)
    keys = np.arange(S)[None, :]
    if is_causal:
        visible = visible & (keys <= own)
    if window is not None:
        left, right = (window - 1, 0) if isinstance(window, int) else window
        visible = visible & (keys >= own - left) & (keys <= own + right)
    if key_mask is not None:
        visible = visible & (_per_sample(np.asarray(key_mask), has_heads, 1) != 0)
    if segment_ids is not None:
        pair = segment_ids if isinstance(segment_ids, tuple) else (segment_ids, segment_ids)
        rows, columns = (_per_sample(np.asarray(ids), has_heads, 1) for ids in pair)
        visible = visible & (np.swapaxes(rows, -1, -2) == columns)
    return visible


def _per_sample(array: Array, has_heads: bool, trailing: int) -> Array:
    """Give batch + trailing axes the axes of scores: batch, heads where there are any, T, S."""
    if trailing == 0 and array.ndim == 0:
        return array
    batch = array.shape[: array.ndim - trailing]
    heads = (1,) if has_heads else ()
    last = (1, array.shape[-1]) if trailing else (1, 1)
    return array.reshape(batch + heads + last)


def _align(array: Array, rank: int) -> Array:
    """Insert the head axis of a mask or bias that is given per sample."""
    return np.expand_dims(array, -3) if rank >= 4 and array.ndim == rank - 1 else array


def _softmax(scores: Array, visible: Array, sink: Array | None) -> tuple[Array, Array]:
    """Weights of the keys and of the sink; a row without a visible key has none."""
    top = scores.max(axis=-1, keepdims=True, initial=-np.inf)
    if sink is not None:
        top = np.maximum(top, sink)
    top = np.where(np.isneginf(top), 0.0, top)
    powers = np.where(visible, np.exp(scores - top), 0.0)
    sink_power = np.zeros_like(top) if sink is None else np.exp(sink - top)
    total = powers.sum(axis=-1, keepdims=True) + sink_power
    total = np.where(total == 0.0, 1.0, total)
    return powers / total, sink_power / total


def _softcap(products: Array, softcap: float | None) -> tuple[Array, Array]:
    if softcap is None:
        return products, np.ones_like(products)
    tanh = np.tanh(products / softcap)
    return softcap * tanh, 1.0 - tanh**2


def _dot(left: Array, right: Array) -> Array:
    return left @ _transposed(right)


def _transposed(array: Array) -> Array:
    return np.swapaxes(array, -1, -2)


def _repeat(array: Array, group: int) -> Array:
    """Query head n reads key/value head n // group."""
    return array if group == 1 else np.repeat(array, group, axis=-3)


def _sum_groups(array: Array, group: int) -> Array:
    if group == 1:
        return array
    *batch, N, rows, columns = array.shape
    return array.reshape(*batch, N // group, group, rows, columns).sum(axis=-3)


def _sum_to(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum the axes along which ``shape`` was broadcast."""
    array = array.sum(axis=tuple(range(array.ndim - len(shape))))
    axes = tuple(i for i, size in enumerate(shape) if size == 1 and array.shape[i] != 1)
    return array.sum(axis=axes, keepdims=True)
