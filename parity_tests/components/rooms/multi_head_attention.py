"""Multi-head attention with all that models add to it."""

from typing import Any

import numpy as np

from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    NormConfig,
    QKNormConfig,
    RotaryConfig,
    ScoreConfig,
)
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors, linear, under
from parity_tests.components.room import KEYS, QUERIES, Example, Room, X, starting_at
from parity_tests.components.rooms.attention import attend
from parity_tests.components.rooms.norms import norm
from parity_tests.components.rooms.positions import position_bias
from parity_tests.components.rooms.rotary import ROTARY_PART, rotate
from parity_tests.support.sizes import GROUPED_K, GROUPED_N, B, D, H, N


def multi_head_attention(
    config: Any, tensors: Tensors, query, key=None, value=None, mask=None, **options: Any
) -> tuple[Array, Array | None]:
    """Project, norm, rotate, attend in each head, project (Vaswani et al. 2017, section 3.2.2)."""
    N, K, _ = config.sizes
    key = query if key is None else key
    value = key if value is None else value
    T, S = query.shape[-2], key.shape[-2]
    at_queries, at_keys, length = positions_of(T, S, options)

    def project(name: str, x: Array, count: int, positions: Array) -> Array:
        x = linear(tensors, f"{name}_proj", x)
        own = under(f"{name}_norm", tensors)
        if own and config.qk_norm.over == "width":
            x = norm(config.qk_norm.norm, own, x)
        x = heads(x, count)
        if own and config.qk_norm.over == "head":
            x = norm(config.qk_norm.norm, own, x)
        return x if config.rotary is None else rotate(config.rotary, x, positions, length)

    bias = options.pop("bias", None)
    if config.position_bias is not None:
        weight = tensors.get("position_bias.bias_embed.weight")
        more = position_bias(config.position_bias, weight, N, at_queries, at_keys)
        more = more if more.ndim == query.ndim + 1 else more[None]
        bias = more if bias is None else _over_heads(bias, query.ndim + 1) + more
    output, weights = attend(
        config.score,
        project("q", query, N, at_queries),
        project("k", key, K, at_keys),
        heads(linear(tensors, "v_proj", value), K),
        mask=mask,
        bias=bias,
        sinks=tensors.get("sinks_param"),
        **options,
    )
    return linear(tensors, "out_proj", joined(output)), weights


def positions_of(T: int, S: int, options: dict[str, Any]) -> tuple[Array, Array, int]:
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


def heads(x: Array, count: int) -> Array:
    return np.stack(np.split(x, count, axis=-1), axis=-3)


def joined(x: Array) -> Array:
    return np.concatenate(list(np.moveaxis(x, -3, 0)), axis=-1)


def _over_heads(bias: Array, rank: int) -> Array:
    return np.expand_dims(bias, -3) if bias.ndim == rank - 1 else bias


MULTI_HEAD_ATTENTION = Room(
    Example(AttentionConfig(d_model=D, num_heads=N), (X, X, X)),
    changes={
        "d_model": 2 * D,
        "num_heads": 5,
        "num_kv_heads": 1,
        "head_dim": 4,
        "qkv_bias": False,
        "out_bias": False,
        "attention_dropout": 0.5,
        "score": ScoreConfig(is_causal=True),
        "kv_dim": 4,
        "rotary": RotaryConfig(dim=4),
        "qk_norm": QKNormConfig(),
        "position_bias": AlibiConfig(),
    },
    parts={
        "score": starting_at(
            ScoreConfig(), scale=2.0, softcap=1.0, window=(1, 0), is_causal=True, sinks=True
        ),
        "qk_norm": starting_at(QKNormConfig(), norm=NormConfig(), over="width"),
        "rotary": ROTARY_PART,
    },
    formula=multi_head_attention,
    calls={
        "MultiHeadAttention": lambda draw: ComponentCase(
            AttentionConfig(d_model=D, num_heads=N),
            {
                "query": draw.normal(B, QUERIES, D),
                "key": draw.normal(B, KEYS, D),
                "value": draw.normal(B, KEYS, D),
            },
            {"mask": draw.coins(B, QUERIES, KEYS) & draw.coins(B, QUERIES, 1)},
        ),
        "MultiHeadAttention, grouped": lambda draw: ComponentCase(
            AttentionConfig(
                d_model=D,
                num_heads=GROUPED_N,
                num_kv_heads=GROUPED_K,
                head_dim=H,
                qkv_bias=False,
                out_bias=False,
                score=ScoreConfig(is_causal=True, window=4, scale=0.3),
            ),
            {
                "query": draw.normal(B, QUERIES, D),
                "key": draw.normal(B, KEYS, D),
                "value": draw.normal(B, KEYS, D),
            },
            {"bias": draw.normal(1, GROUPED_N, 1, KEYS), "offset": np.array([1, 2])},
        ),
    },
)
