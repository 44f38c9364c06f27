"""Rows of ``cases``: masks and biases, attention to another sequence, latent attention."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from diptych.spec import AlibiConfig, RelativeBiasConfig, RotaryConfig, ScoreConfig
from parity_tests.components.case import ComponentCase
from parity_tests.models.parts import (
    GROUPED,
    LENGTHS,
    MEMORY_D,
    NO_BIAS,
    QK_HEAD,
    ROTARY,
    SINGLE,
    YARN,
    B,
    D,
    attention,
    coins,
    latent,
    masks,
    normal,
    score,
)


def masked_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield every mask, with as many keys as queries, more and fewer."""
    for number, (T, S) in enumerate((*LENGTHS, (0, 6), (6, 0))):
        kind = ("full", "causal", "window", "softcap", "grouped", "no query", "no key")[number]
        fields = {
            "causal": {"score": score()},
            "window": {"score": score(window=3)},
            "softcap": {"score": score(softcap=0.9)},
            "grouped": GROUPED,
        }.get(kind, {})
        call = {"offset": S - T} if "score" in fields else {}
        yield f"{kind}, T={T} S={S}", attention(T, S, call, **fields)
    for name, call in masks(7, 7).items():
        rotary = {"rotary": ROTARY} if "mask" in name else {}
        yield f"self, {name}", attention(7, call=call, score=ScoreConfig(scale=0.7), **rotary)
    for name, call in masks(4, 6).items():
        yield f"T < S, {name}", attention(4, 6, call, score=ScoreConfig(softcap=2.0))
    packed = {
        "segment_ids": np.array([[0, 0, 0, 1, 1, 1, 2], [0, 1, 1, 1, 1, 2, 2]]),
        "position_ids": np.array([[0, 1, 2, 0, 1, 2, 0], [0, 0, 1, 2, 3, 0, 1]]),
    }
    yield (
        "packed segments, positions that start anew, causal, rotary, grouped",
        attention(7, call=packed, rotary=ROTARY, score=score(), **GROUPED),
    )
    yield (
        "packed segments, window, q/k norm",
        attention(
            7, call={"segment_ids": packed["segment_ids"]}, score=score(window=2), qk_norm=QK_HEAD
        ),
    )


def biased_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield T5's relative bias and ALiBi."""
    t5 = {"score": ScoreConfig(scale=1.0), **NO_BIAS}
    small = RelativeBiasConfig(num_buckets=8, max_distance=6)
    one_way = replace(small, is_bidirectional=False)
    yield "t5 encoder: relative bias both ways, no scale", attention(9, **t5, position_bias=small)
    yield (
        "t5 decoder: relative bias one way, causal",
        attention(9, **(t5 | {"score": score(scale=1.0)}), position_bias=one_way),
    )
    yield (
        "mt5: relative bias, padding",
        attention(
            7, **t5, position_bias=small, call={"key_mask": np.arange(7) < np.array([[7], [3]])}
        ),
    )
    yield (
        "t5: relative bias and additive bias",
        attention(**t5, position_bias=small, call={"bias": normal(5, 5)[None, None]}),
    )
    yield (
        "t5: relative bias, T < S, offset",
        attention(
            2, 9, **(t5 | {"score": score(scale=1.0)}), position_bias=one_way, call={"offset": 7}
        ),
    )
    yield (
        "bloom: alibi, 6 heads",
        attention(num_heads=6, score=score(), position_bias=AlibiConfig()),
    )
    yield (
        "bloom: alibi, 8 heads, padding",
        attention(
            num_heads=8,
            score=score(),
            position_bias=AlibiConfig(),
            call={"key_mask": np.arange(5) >= np.array([[0], [2]])},
        ),
    )
    yield (
        "mpt: alibi, 5 heads, exponent 4",
        attention(
            num_heads=5, score=score(), position_bias=AlibiConfig(max_exponent=4.0), **NO_BIAS
        ),
    )
    yield (
        "falcon 1b: alibi, scale, multi-query",
        attention(score=score(), position_bias=AlibiConfig(scale=0.5), **SINGLE),
    )
    yield (
        "alibi, window, softcap",
        attention(7, num_heads=3, score=score(window=4, softcap=2.0), position_bias=AlibiConfig()),
    )
    yield (
        "alibi, chunk at an offset",
        attention(2, 7, score=score(), position_bias=AlibiConfig(), call={"offset": 5}),
    )
    yield (
        "alibi, offset per sample",
        attention(
            2, 7, score=score(), position_bias=AlibiConfig(), call={"offset": np.array([5, 1])}
        ),
    )
    yield (
        "alibi, given positions per sample",
        attention(
            score=score(),
            position_bias=AlibiConfig(),
            call={"position_ids": np.array([[0, 1, 2, 0, 1], [2, 3, 4, 5, 6]])},
        ),
    )


def cross_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield attention to another sequence."""
    yield "bart cross: T < S", attention(4, 9)
    yield "t5 cross: no scale, no biases", attention(4, 9, score=ScoreConfig(scale=1.0), **NO_BIAS)
    yield (
        "mllama cross: width of the memory, q/k norm, grouped",
        attention(4, 9, kv_dim=MEMORY_D, qk_norm=QK_HEAD, **(GROUPED | NO_BIAS)),
    )
    yield "whisper cross: k without bias", attention(3, 8, qkv_bias=(True, False, True))
    yield "perceiver: T > S, width of the memory", attention(9, 4, kv_dim=MEMORY_D)
    yield (
        "stable diffusion cross: width of the memory, padding",
        attention(9, 4, kv_dim=MEMORY_D, qkv_bias=False, call={"key_mask": coins(B, 4)}),
    )
    three = attention(4, 6)
    three.arguments["value"] = normal(B, 6, D)
    yield "keys and values of two sequences", three
    yield "cross, one query", attention(1, 9, kv_dim=MEMORY_D)
    yield "cross, no memory", attention(4, 0, kv_dim=MEMORY_D)


def latent_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield multi-head latent attention."""
    mscale = RotaryConfig(interleaved=True, scaling=replace(YARN, mscale=0.7, mscale_all_dim=0.9))
    yield "deepseek_v2 lite: no q rank", latent()
    yield "deepseek_v3: q rank", latent(7, q_rank=9)
    yield "deepseek_v3: yarn, scale", latent(q_rank=9, rotary=mscale, score=score(scale=0.4))
    yield "deepseek, biases", latent(q_rank=9, qkv_bias=True, out_bias=True)
    yield "latent, half-split rotary", latent(rotary=ROTARY)
    yield "latent, padding", latent(call={"key_mask": np.arange(5) < np.array([[5], [2]])})
    yield "latent, window, softcap", latent(7, score=score(window=3, softcap=2.0))
    yield (
        "latent, packed segments, given positions",
        latent(
            call={
                "segment_ids": np.array([[0, 0, 1, 1, 1], [0, 1, 1, 2, 2]]),
                "position_ids": np.array([[0, 1, 0, 1, 2], [0, 0, 1, 0, 1]]),
            }
        ),
    )
    yield (
        "latent, bidirectional, rows that see nothing",
        latent(score=ScoreConfig(), call={"mask": coins(B, 5, 5) & (np.arange(5) != 1)[:, None]}),
    )
    yield "latent, one position", latent(1, q_rank=9, call={"offset": 0})
