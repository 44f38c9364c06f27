"""What the tests of invariance draw from: configs, ways to call, masks.

B samples   T positions   D model width   N query heads   K key/value heads
"""

import itertools
import random
from dataclasses import fields
from typing import Any

import numpy as np

from diptych.spec import (
    COMPONENTS,
    AlibiConfig,
    BlockConfig,
    Config,
    DecoderConfig,
    MixtureOfExpertsConfig,
    NormConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    RouterConfig,
    ScoreConfig,
)

B, T, D, N, K = 2, 5, 8, 2, 1
RATE, PREFILL = 0.3, 4
RMS = NormConfig(kind="rms")
Drawn = dict[str, Any]

SCORES: dict[str, list[Any]] = {"window": [None, 2], "softcap": [None, 2.0]}
T5_BIAS = RelativeBiasConfig(num_buckets=4, max_distance=4, is_bidirectional=False)
HEADS: dict[str, list[Any]] = {
    "sinks": [False, True],
    "num_kv_heads": [N, K],
    "position_bias": [None, AlibiConfig(), T5_BIAS],
    "rotary": [None, RotaryConfig(), RotaryConfig(interleaved=True)],
    "qk_norm": [None, QKNormConfig(), QKNormConfig(over="width")],
}
CALLS: dict[str, list[Any]] = {
    "path": [
        ("full", None),
        ("full", "key_mask"),
        ("full", "segment_ids"),
        ("full", "mask"),
        ("cached", None),
        ("cached", "key_mask"),
    ],
    "training": [False, True],
    "need_weights": [False, True],
}
CHOICES: dict[str, dict[str, list[Any]]] = {
    "MultiHeadAttention": SCORES | HEADS | CALLS,
    "LatentAttention": SCORES
    | {
        "q_rank": [None, 5],
        "rotary": [RotaryConfig(), RotaryConfig(interleaved=True)],
    }
    | CALLS,
    "Decoder": HEADS
    | {"softcap": SCORES["softcap"]}
    | {"scoring": ["softmax", "softmax_of_top", "sigmoid"]}
    | CALLS,
}
"""By component, the values of every choice."""


def covering_rows(component: str) -> list[Drawn]:
    """Return draws in which any two values of two choices stand together at least once.

    Greedy: the next row is that of many random ones with the most pairs that no row has yet.
    """
    choices, generator, rows = CHOICES[component], random.Random(0), []
    left = {
        ((name, value), (other, second))
        for (name, values), (other, seconds) in itertools.combinations(choices.items(), 2)
        for value, second in itertools.product(values, seconds)
    }
    while left:
        drawn = [
            {name: generator.choice(values) for name, values in choices.items()} for _ in range(50)
        ]
        rows.append(max(drawn, key=lambda row: len(left & _pairs(row))))
        left -= _pairs(rows[-1])
    return [row | {"is_causal": True} for row in rows]


def config_of(component: str, drawn: Drawn) -> Config:
    """Return the drawn config; a decoder's layers have a window and none in turn."""
    if component == "Decoder":
        experts = MixtureOfExpertsConfig(
            d_model=D,
            d_ff=6,
            num_experts=4,
            top_k=2,
            shared_d_ff=5,
            router=RouterConfig(scoring=drawn["scoring"]),
        )
        layers = tuple(
            BlockConfig(
                attention=config_of("MultiHeadAttention", drawn | {"window": window}),
                feed_forward=experts,
                norm=RMS,
                dropout=RATE,
            )
            for window in (None, 2)
        )
        return DecoderConfig(layer=layers, num_layers=2, final_norm=RMS, dropout=RATE)
    window = drawn.get("window")
    score = ScoreConfig(
        is_causal=drawn["is_causal"],
        window=(1, 1) if window and not drawn["is_causal"] else window,
        softcap=drawn.get("softcap"),
        sinks=drawn.get("sinks", False),
    )
    options: Drawn = {"d_model": D, "num_heads": N, "attention_dropout": RATE, "score": score}
    if component == "LatentAttention":
        options |= {"kv_rank": 5, "nope_dim": 3, "rope_dim": 4, "v_dim": 3}
    names = {field.name for field in fields(COMPONENTS[component])}
    return COMPONENTS[component](**options, **{k: v for k, v in drawn.items() if k in names})


def draw_masks(random: np.random.Generator, drawn: Drawn) -> dict[str, np.ndarray]:
    """Return the drawn kind of mask, by argument; a cache takes padding at the end alone."""
    name = drawn["path"][1]
    if cached(drawn):
        padding = np.arange(PREFILL) < random.integers(1, PREFILL + 1, size=(B, 1))
        last = np.ones((B, T - PREFILL), bool)
        return {name: np.concatenate([padding, last], -1)} if name == "key_mask" else {}
    if name == "segment_ids":
        return {name: np.sort(random.integers(0, 3, size=(B, T)), -1)}
    if name == "key_mask":
        return {name: (random.random((B, T)) < 0.7) | (np.arange(T) == 0)}
    return (
        {name: (random.random((B, T, T)) < 0.7) | np.eye(T, dtype=bool)} if name == "mask" else {}
    )


def cached(drawn: Drawn) -> bool:
    """Return whether the call goes through a cache, which only a causal one may."""
    return drawn["path"][0] == "cached" and drawn["is_causal"]


def _pairs(row: Drawn) -> set[tuple[Any, ...]]:
    return set(itertools.combinations(row.items(), 2))
