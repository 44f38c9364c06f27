"""Rows of ``cases``: attention of one sequence to itself."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from diptych.spec import LinearScaling, NormConfig, QKNormConfig, RotaryConfig, ScoreConfig
from parity_tests.components.case import ComponentCase
from parity_tests.models.parts import (
    GEMMA_NORM,
    GROUPED,
    NO_BIAS,
    NORM_NO_BIAS,
    PAIRS,
    QK_HEAD,
    QK_WIDTH,
    QKV_BIAS,
    ROTARY,
    SCALINGS,
    SINGLE,
    YARN,
    attention,
    coins,
    score,
)


def plain_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield self-attention without rotary positions."""
    yield "bert: bidirectional", attention(7)
    yield "gpt2: causal", attention(score=score())
    yield (
        "gpt_neo local: window, no q/k/v bias, scale 1",
        attention(7, score=score(window=4, scale=1.0), qkv_bias=False),
    )
    yield "falcon 7b: multi-query", attention(score=score(), **(SINGLE | NO_BIAS))
    yield "gpt_bigcode: multi-query with biases", attention(score=score(), **SINGLE)
    yield "whisper encoder: k without bias", attention(qkv_bias=(True, False, True))
    yield (
        "whisper decoder: causal, k without bias",
        attention(qkv_bias=(True, False, True), score=score()),
    )
    yield (
        "vit 22b: q/k layer norm per head",
        attention(qk_norm=QKNormConfig(norm=NormConfig(bias=False))),
    )
    yield "siglip: wide heads", attention(9, head_dim=8)
    yield "narrow heads", attention(head_dim=1, num_heads=7)
    yield "one head", attention(num_heads=1, head_dim=None)
    yield "longformer: window both ways", attention(9, score=ScoreConfig(window=(2, 2)))
    yield "window of one", attention(score=score(window=1))
    yield "window ahead of the query", attention(7, score=ScoreConfig(window=(1, 3)))
    yield "grok: softcap, scale", attention(score=score(softcap=1.5, scale=0.2), **NO_BIAS)
    yield "attention sinks", attention(score=score(sinks=True), **GROUPED)
    yield (
        "sinks, fully masked rows",
        attention(
            score=ScoreConfig(sinks=True),
            call={"mask": coins(5, 5) & (np.arange(5) != 2)[:, None]},
        ),
    )
    yield "one position", attention(1, score=score())
    yield "no position", attention(0, score=score(), rotary=ROTARY)
    yield "not asked for weights", attention(score=score(), call={"need_weights": False})


def rotary_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield self-attention with rotary positions and every scaling."""
    causal: dict[str, Any] = {"score": score(), "rotary": ROTARY, **NO_BIAS}
    yield "llama: rotary", attention(**causal)
    yield "llama3: rotary, grouped", attention(7, **(causal | GROUPED))
    yield "qwen2: rotary, grouped, q/k/v bias", attention(**(causal | GROUPED | QKV_BIAS))
    yield (
        "mistral: rotary, grouped, window",
        attention(9, **(causal | GROUPED | {"score": score(window=4)})),
    )
    yield "qwen3: q/k norm per head, grouped", attention(**(causal | GROUPED), qk_norm=QK_HEAD)
    yield "olmo2: q/k norm full width", attention(**causal, qk_norm=QK_WIDTH)
    yield (
        "olmo2 32b: q/k norm full width, grouped",
        attention(**(causal | GROUPED), qk_norm=QK_WIDTH),
    )
    yield "gemma1: multi-query, wide heads", attention(**(causal | SINGLE), head_dim=8)
    yield (
        "gemma2 local: window, softcap, scale, grouped",
        attention(9, **(causal | GROUPED | {"score": score(window=4, softcap=5.0, scale=0.3)})),
    )
    yield (
        "gemma2 global: softcap, scale, grouped",
        attention(**(causal | GROUPED | {"score": score(softcap=5.0, scale=0.3)})),
    )
    yield (
        "gemma3 local: window, q/k norm 1 + w, theta",
        attention(
            9,
            **(causal | GROUPED | {"score": score(window=5, scale=0.3)}),
            qk_norm=QKNormConfig(norm=GEMMA_NORM),
        ),
    )
    yield (
        "gemma3 global: linear scaling, q/k norm 1 + w",
        attention(
            **(
                causal
                | GROUPED
                | {"rotary": RotaryConfig(theta=1e6, scaling=LinearScaling(factor=8))}
            ),
            qk_norm=QKNormConfig(norm=GEMMA_NORM),
        ),
    )
    yield (
        "gpt_oss local: sinks, window, bias, yarn, grouped",
        attention(
            9,
            score=score(sinks=True, window=4),
            rotary=RotaryConfig(theta=150000.0, scaling=replace(YARN, truncate=False)),
            **GROUPED,
        ),
    )
    yield (
        "gpt_oss global: sinks, bias, yarn, grouped",
        attention(
            score=score(sinks=True), rotary=RotaryConfig(theta=150000.0, scaling=YARN), **GROUPED
        ),
    )
    yield "gpt_neox: partial rotary, bias", attention(rotary=RotaryConfig(dim=2), score=score())
    yield (
        "phi: partial rotary, q/k layer norm",
        attention(
            rotary=RotaryConfig(dim=4), score=score(), qk_norm=QKNormConfig(norm=NormConfig())
        ),
    )
    yield (
        "gpt_j: interleaved, partial",
        attention(rotary=RotaryConfig(dim=4, interleaved=True), score=score(), **NO_BIAS),
    )
    yield "cohere: interleaved, grouped", attention(**(causal | GROUPED | {"rotary": PAIRS}))
    yield (
        "command r plus: interleaved, q/k layer norm without bias",
        attention(**(causal | {"rotary": PAIRS}), qk_norm=QKNormConfig(norm=NORM_NO_BIAS)),
    )
    yield (
        "cohere2 local: interleaved, window",
        attention(7, **(causal | GROUPED | {"rotary": PAIRS, "score": score(window=3)})),
    )
    yield "smollm3: no positions, grouped", attention(score=score(), **(GROUPED | NO_BIAS))
    yield (
        "glm4: interleaved, partial, q/k/v bias, grouped",
        attention(
            score=score(), rotary=RotaryConfig(dim=4, interleaved=True), **(GROUPED | QKV_BIAS)
        ),
    )
    yield (
        "stablelm: partial, q/k norm, grouped",
        attention(**(causal | GROUPED | {"rotary": RotaryConfig(dim=2)}), qk_norm=QK_HEAD),
    )
    yield "modernbert global: rotary, bidirectional", attention(7, rotary=ROTARY, **NO_BIAS)
    yield (
        "modernbert local: rotary, window both ways",
        attention(9, rotary=ROTARY, score=ScoreConfig(window=(2, 2)), **NO_BIAS),
    )
    yield "rotary, one position at an offset", attention(1, 6, **causal, call={"offset": 5})
    yield "rotary, chunk at an offset", attention(3, 8, **causal, call={"offset": 5})
    yield "rotary, offset per sample", attention(3, 8, **causal, call={"offset": np.array([5, 2])})
    yield (
        "rotary, negative offset, rows that see nothing",
        attention(7, 5, **causal, call={"offset": -3}),
    )
    yield (
        "rotary, given positions",
        attention(**causal, call={"position_ids": np.array([[0, 1, 2, 0, 1], [3, 4, 5, 6, 7]])}),
    )
    yield (
        "rotary, positions of queries and keys",
        attention(
            3,
            4,
            rotary=ROTARY,
            call={"position_ids": (np.array([4, 6, 9]), np.array([[0, 1, 2, 3], [2, 3, 4, 5]]))},
        ),
    )
    for name, scaling in SCALINGS.items():
        rotary = RotaryConfig(theta=500.0, scaling=scaling)
        yield f"{name} scaling", attention(**(causal | {"rotary": rotary}))
