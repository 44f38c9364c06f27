"""Attention modules and blocks in numpy float64, from the papers' formulas, forward only."""

from dataclasses import fields
from typing import Any

import numpy as np

from diptych.spec import (
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LatentAttentionConfig,
    MixtureOfExpertsConfig,
)
from parity_tests.attention.oracle import Array, attention
from parity_tests.components.oracle_parts import (
    Tensors,
    feed_forward,
    gated_feed_forward,
    linear,
    mixture_of_experts,
    norm,
    under,
)
from parity_tests.components.oracle_positions import position_bias, rotate


def multi_head_attention(
    config: Any, tensors: Tensors, query, key=None, value=None, mask=None, **options: Any
) -> tuple[Array, Array | None]:
    """Project, norm, rotate, attend in each head, project (Vaswani et al. 2017, section 3.2.2)."""
    N, K, _ = config.sizes
    key = query if key is None else key
    value = key if value is None else value
    T, S = query.shape[-2], key.shape[-2]
    at_queries, at_keys, length = _positions(T, S, options)

    def project(name: str, x: Array, count: int, positions: Array) -> Array:
        x = linear(tensors, f"{name}_proj", x)
        own = under(f"{name}_norm", tensors)
        if own and config.qk_norm.over == "width":
            x = norm(config.qk_norm.norm, own, x)
        x = _heads(x, count)
        if own and config.qk_norm.over == "head":
            x = norm(config.qk_norm.norm, own, x)
        return x if config.rotary is None else rotate(config.rotary, x, positions, length)

    bias = options.pop("bias", None)
    if config.position_bias is not None:
        weight = tensors.get("position_bias.bias_embed.weight")
        more = position_bias(config.position_bias, weight, N, at_queries, at_keys)
        more = more if more.ndim == query.ndim + 1 else more[None]
        bias = more if bias is None else _over_heads(bias, query.ndim + 1) + more
    output, weights = _attend(
        config.score,
        project("q", query, N, at_queries),
        project("k", key, K, at_keys),
        _heads(linear(tensors, "v_proj", value), K),
        mask=mask,
        bias=bias,
        sinks=tensors.get("sinks_param"),
        **options,
    )
    return linear(tensors, "out_proj", _joined(output)), weights


def latent_attention(
    config: Any, tensors: Tensors, x: Array, mask: Array | None = None, **options: Any
) -> tuple[Array, Array | None]:
    """Low-rank latents with a decoupled rotary part (DeepSeek-V2 2024, section 2.1)."""
    N, T = config.num_heads, x.shape[-2]
    at_queries, at_keys, length = _positions(T, T, options)
    if config.q_rank is None:
        query = linear(tensors, "q_proj", x)
    else:
        latent = linear(tensors, "q_down_proj", x)
        query = linear(tensors, "q_up_proj", norm(config.norm, under("q_norm", tensors), latent))
    query = _heads(query, N)
    compressed = linear(tensors, "kv_down_proj", x)
    latent, shared = np.split(compressed, [config.kv_rank], axis=-1)
    up = linear(tensors, "kv_up_proj", norm(config.norm, under("kv_norm", tensors), latent))
    key, value = np.split(_heads(up, N), [config.nope_dim], axis=-1)
    shared = rotate(config.rotary, shared[..., None, :, :], at_keys, length)
    query_plain, query_turned = np.split(query, [config.nope_dim], axis=-1)
    query_turned = rotate(config.rotary, query_turned, at_queries, length)
    output, weights = _attend(
        config.score,
        np.concatenate([query_plain, query_turned], axis=-1),
        np.concatenate([key, np.repeat(shared, N, axis=-3)], axis=-1),
        value,
        mask=mask,
        **options,
    )
    return linear(tensors, "out_proj", _joined(output)), weights


def block(
    config: Any,
    tensors: Tensors,
    x: Array,
    mask: Array | None = None,
    *,
    memory: Array | None = None,
    memory_mask: Array | None = None,
    need_weights: bool = False,
    **options: Any,
) -> dict[str, Array | None]:
    """Compute a transformer layer: each placement written out as its paper has it."""
    config = config.block
    found: dict[str, Any] = {}

    def self_attend(x: Array) -> Array:
        inner = under("attention", tensors)
        is_latent = isinstance(config.attention, LatentAttentionConfig)
        if is_latent:
            y, weights = latent_attention(config.attention, inner, x, mask, **options)
        else:
            y, weights = multi_head_attention(config.attention, inner, x, mask=mask, **options)
        found["attention_weights"] = weights
        return y

    def cross_attend(x: Array) -> Array:
        inner = under("cross_attention", tensors)
        y, found["cross_attention_weights"] = multi_head_attention(
            config.cross_attention, inner, x, memory, key_mask=memory_mask
        )
        return y

    def transform(x: Array) -> Array:
        apply = {
            FeedForwardConfig: feed_forward,
            GatedFeedForwardConfig: gated_feed_forward,
            MixtureOfExpertsConfig: mixture_of_experts,
        }[type(config.feed_forward)]
        return apply(config.feed_forward, under("feed_forward", tensors), x)

    def normed(name: str, x: Array) -> Array:
        own = under(name, tensors)
        return norm(config.norm, own, x) if own else x

    def scaled(name: str, y: Array) -> Array:
        return y * tensors.get(f"{name}_scale_param", 1.0)

    branches = {"attention": self_attend}
    if config.cross_attention is not None:
        branches["cross_attention"] = cross_attend
    branches["feed_forward"] = transform
    placement = config.norm_placement
    if placement.startswith("parallel"):
        first = normed("attention_norm", x)
        second = first if placement == "parallel_shared" else normed("feed_forward_norm", x)
        x = x + scaled("attention", self_attend(first)) + scaled("feed_forward", transform(second))
    else:
        for name, branch in branches.items():
            match placement:
                case "post":
                    x = normed(f"{name}_norm", x + scaled(name, branch(x)))
                case "pre":
                    x = x + scaled(name, branch(normed(f"{name}_norm", x)))
                case "sandwich":
                    y = branch(normed(f"{name}_norm", x))
                    x = x + scaled(name, normed(f"{name}_out_norm", y))
                case "branch":
                    x = x + scaled(name, normed(f"{name}_norm", branch(x)))
    weights = found if need_weights else {}
    return {
        "output": x,
        "attention_weights": weights.get("attention_weights"),
        "cross_attention_weights": weights.get("cross_attention_weights"),
        "cache": None,
    }


def _positions(T: int, S: int, options: dict[str, Any]) -> tuple[Array, Array, int]:
    """Take the positions of queries and keys out of a call's options."""
    offset, given = options.get("offset", 0), options.pop("position_ids", None)
    length = max(T + offset, S) if isinstance(offset, int) else max(T, S)
    if given is not None:
        at_queries, at_keys = given if isinstance(given, tuple) else (given, given)
        return at_queries, at_keys, length
    at_queries = np.asarray(offset)[..., None] + np.arange(T)
    at_keys = np.arange(S)
    if at_queries.ndim > 1:
        at_keys = np.broadcast_to(at_keys, (len(at_queries), S))
    return at_queries, at_keys, length


def _attend(score: Any, query: Array, key: Array, value: Array, **options: Any) -> Any:
    names = [field.name for field in fields(score) if field.name != "sinks"]
    need_weights = options.pop("need_weights", True)
    chosen = {name: getattr(score, name) for name in names}
    result = attention(query, key, value, **chosen, **options)
    return result.output, result.weights if need_weights else None


def _heads(x: Array, count: int) -> Array:
    return np.stack(np.split(x, count, axis=-1), axis=-3)


def _joined(x: Array) -> Array:
    return np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1)


def _over_heads(bias: Array, rank: int) -> Array:
    return np.expand_dims(bias, -3) if bias.ndim == rank - 1 else bias
