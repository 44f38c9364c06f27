"""Scaled dot-product attention.

B batch   T query positions   S key positions
N query heads   K key/value heads   G = N / K   H head width   V value width
"""

import math

import jax
import jax.numpy as jnp
from jax import Array

from diptych.spec.checks.attention import (
    check_attention_dtypes,
    check_attention_shapes,
    check_bias_dtype,
    check_sinks,
)
from diptych.spec.checks.sizes import check_rate

from ._dtype import dtype_name
from ._precision import matmul_precision
from .dropout import apply_dropout
from .visibility import align, visible_keys


def scaled_dot_product_attention(
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
    need_weights: bool = True,
    rng_key: Array | None = None,
) -> tuple[Array, Array | None]:
    """Average the values by the softmax of query-key products.

    ``weights = softmax(softcap(scale query key^T) + bias)`` over the visible keys, ``output =
    dropout(weights) value`` (Vaswani et al. 2017, section 3.2.1), where ``softcap(s) = softcap
    tanh(s / softcap)``. A key is visible where mask, key mask, bias, causal, window and segments
    all allow it; a query that sees no key has weights, output and gradients of 0. Keys and values
    that no query sees cannot reach the output, NaN included. Query head n reads key/value head
    n // G. Scores and softmax are float32, or float64 if the query or the bias is.

    Args:
        query: (..., N, T, H), or of rank 2 or 3 (..., T, H).
        key: (..., K, S, H), or (..., S, H), in the dtype of the query.
        value: (..., K, S, V), or (..., S, V), in the dtype of the query.
        mask: Boolean or integer, true or not 0 where a query may attend: (T, S), (..., T, S) one
            per sample, or (..., N, T, S), size 1 broadcasting. A query of rank r <= 3 takes
            any mask of at most rank r that broadcasts to (..., T, S).
        key_mask: Boolean or integer (..., S), one per sample: the keys that may be attended to.
        bias: Floating, the shapes of ``mask``: added to the scores; -inf hides.
        is_causal: Whether query i sees keys 0 .. i + offset only.
        offset: Position of the first query among the keys: an int, possibly negative, or
            integer (...), one per sample.
        window: Visible keys (left, right) of a query's own, which is visible too; an int w,
            with ``is_causal`` only, means (w - 1, 0).
        segment_ids: Integer (..., T), one per sample, if T == S, else a pair (..., T), (..., S):
            a query sees the keys of its own segment.
        scale: Factor on the products; None means 1 / sqrt(H).
        softcap: Bound of the scores' magnitude before the bias; None means no bound.
        sinks: (N,), one logit per head that takes part in the softmax without key and value.
        dropout: Rate on the weights.
        keep: Boolean or integer (..., N, T, S): the weights to keep, instead of a draw.
        need_weights: Whether to return the weights.
        rng_key: Key of the dropout's draw. Without it and without ``keep``, a rate above 0 is a
            ValueError.

    Returns:
        Output (..., N, T, V) and weights (..., N, T, S), after the softmax, before dropout, or
        None; both in the dtype of the query.

    Raises:
        ValueError: If a shape, the window or the rate does not fit.
        TypeError: If query, key and value have not one floating dtype, a mask is floating, a bias
            is not, or an offset is not integer.
    """
    check_rate(dropout=dropout)
    check_attention_shapes(query.shape, key.shape, value.shape)
    if sinks is not None:
        check_sinks(sinks.shape, query.shape)
    check_attention_dtypes(query=dtype_name(query), key=dtype_name(key), value=dtype_name(value))
    S = key.shape[-2]
    # Scores of 16 bits would round large ones to the same number: float32 at least, kept so.
    score_dtype = jnp.promote_types(query.dtype, jnp.float32)
    if bias is not None:
        check_bias_dtype(dtype_name(bias))
        # Cast to fewer bits, a number that only a wider bias holds would become -inf and hide.
        score_dtype = jnp.result_type(score_dtype, bias)
        bias = align("bias", bias, query, S).astype(score_dtype)
    visible = visible_keys(
        query,
        S,
        mask=mask,
        key_mask=key_mask,
        bias=bias,
        is_causal=is_causal,
        offset=offset,
        window=window,
        segment_ids=segment_ids,
    )
    if visible is not None:
        # A weight of 0 alone would let NaN through: 0 * NaN is NaN, in output and gradients.
        seen = _seen_keys(visible, query, key)
        key, value = jnp.where(seen, key, 0.0), jnp.where(seen, value, 0.0)

    # The queries are scaled, not the products: the same value, T x H instead of T x S numbers.
    scaled_query = query.astype(score_dtype) * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = _product("...TH,...SH->...TS", scaled_query, key.astype(score_dtype))  # (..., T, S)
    if softcap is not None:
        scores = softcap * jnp.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias

    # Rounded here and not before, so that the weights returned are those that were used.
    weights = _softmax(scores, visible, sinks).astype(query.dtype)
    kept = apply_dropout(weights, dropout, keep=keep, rng_key=rng_key)
    output = _product("...TS,...SV->...TV", kept, value)  # (..., T, V)
    return output, weights if need_weights else None


def _seen_keys(visible: Array, query: Array, key: Array) -> Array:
    """Return where some query of the call sees the key, broadcasting to (..., K, S, 1)."""
    seen = visible.any(-2)  # (..., N or 1, S)
    if query.ndim >= 4 and visible.ndim >= 3 and visible.shape[-3] > 1:
        N, K = query.shape[-3], key.shape[-3]
        seen = seen.reshape(*seen.shape[:-2], K, N // K, seen.shape[-1]).any(-2)  # (..., K, S)
    return seen[..., None]  # (..., K or 1, S, 1)


def _product(equation: str, per_query: Array, per_key: Array) -> Array:
    """Multiply (..., N, T, x) with (..., K, S, y), or without heads, by the equation."""
    if per_query.ndim < 4:
        return jnp.einsum(equation, per_query, per_key, precision=matmul_precision())
    # The queries of a group stand in one long row, so that no key is copied for each of them.
    *batch, N, T, width = per_query.shape
    K = per_key.shape[-3]
    grouped = per_query.reshape(*batch, K, N // K * T, width)  # (..., K, G T, x)
    product = jnp.einsum(equation, grouped, per_key, precision=matmul_precision())
    return product.reshape(*batch, N, T, product.shape[-1])  # (..., N, T, y)


def _softmax(scores: Array, visible: Array | None, sinks: Array | None) -> Array:
    if visible is not None:
        # Where a query sees no key, 0 instead of -inf keeps NaN out of softmax and its gradient.
        sees_key = visible.any(-1, keepdims=True)
        hidden = jnp.where(sees_key, -math.inf, 0.0).astype(scores.dtype)
        scores = jnp.where(visible, scores, hidden)
    if sinks is not None:
        sinks = sinks.astype(scores.dtype)[..., None, None]
        sinks = jnp.broadcast_to(sinks, (*scores.shape[:-1], 1))  # (..., N, T, 1)
        # The sink takes its share of the sum; no value belongs to it, so its column goes.
        weights = jax.nn.softmax(jnp.concatenate([scores, sinks], -1), -1)[..., :-1]
    else:
        weights = jax.nn.softmax(scores, -1)
    # A row that sees no key came out uniform, since its scores were all 0.
    return weights if visible is None else jnp.where(visible, weights, 0.0)
