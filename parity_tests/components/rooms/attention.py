"""Attention of given heads, and of one head with projections of its own."""

from dataclasses import fields
from typing import Any

from diptych.spec import HeadAttentionConfig, ScaledDotProductAttentionConfig, ScoreConfig
from parity_tests.attention.oracle import Array, attention
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import linear
from parity_tests.components.room import KEYS, QUERIES, Example, Room, T, X, random_input
from parity_tests.support.sizes import MAX_LEN, B, D, H, N, V


def attend(score: Any, query: Array, key: Array, value: Array, **options: Any) -> Any:
    """Return output and weights of attention with the scores of a ``ScoreConfig``."""
    names = [field.name for field in fields(score) if field.name != "sinks"]
    need_weights = options.pop("need_weights", True)
    chosen = {name: getattr(score, name) for name in names}
    result = attention(query, key, value, **chosen, **options)
    return result.output, result.weights if need_weights else None


def bare_attention(config, tensors, query, key, value, mask=None, **options):
    return attend(config.score, query, key, value, mask=mask, **options)


def head_attention(config, tensors, x, *, need_weights=False):
    query, key, value = (linear(tensors, name, x) for name in ("q_proj", "k_proj", "v_proj"))
    result = attention(query, key, value, is_causal=True)
    return (result.output, result.weights) if need_weights else result.output


SCALED_DOT_PRODUCT_ATTENTION = Room(
    Example(
        ScaledDotProductAttentionConfig(d_k=H),
        tuple(random_input(B, T, H, seed=seed) for seed in (1, 2, 3)),
    ),
    changes={"d_k": 4, "attention_dropout": 0.5, "score": ScoreConfig(softcap=1.0)},
    formula=bare_attention,
    calls={
        "ScaledDotProductAttention": lambda draw: ComponentCase(
            ScaledDotProductAttentionConfig(d_k=H),
            {
                "query": draw.normal(B, QUERIES, H),
                "key": draw.normal(B, KEYS, H),
                "value": draw.normal(B, KEYS, V),
            },
            {"mask": draw.coins(QUERIES, KEYS)},
        ),
        "ScaledDotProductAttention, causal, capped": lambda draw: ComponentCase(
            ScaledDotProductAttentionConfig(d_k=H, score=ScoreConfig(is_causal=True, softcap=1.1)),
            {
                "query": draw.normal(B, N, 7, H),
                "key": draw.normal(B, N, 5, H),
                "value": draw.normal(B, N, 5, V),
            },
            {"offset": -2},
        ),
    },
)
HEAD_ATTENTION = Room(
    Example(HeadAttentionConfig(emb_size=D, head_size=H, max_seq_len=MAX_LEN), (X,)),
    changes={"emb_size": 2 * D, "head_size": 13, "max_seq_len": 6},
    formula=head_attention,
    calls={
        "HeadAttention": lambda draw: ComponentCase(
            HeadAttentionConfig(emb_size=D, head_size=H, max_seq_len=MAX_LEN),
            {"x": draw.normal(B, QUERIES, D)},
            {"need_weights": True},
        )
    },
)
