"""What the rows of ``cases`` are made from: calls by kind, configs of families, masks.

B batch   T query positions   S key positions   D model width   H head width
"""

from dataclasses import replace
from typing import Any

import numpy as np

from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    DynamicScaling,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    LatentAttentionConfig,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    MixtureOfExpertsConfig,
    NormConfig,
    QKNormConfig,
    RotaryConfig,
    RouterConfig,
    ScoreConfig,
    YarnScaling,
)
from parity_tests.components.case import ComponentCase

B, D, H, MEMORY_D, F = 2, 11, 6, 7, 13
LENGTHS = ((5, 5), (3, 8), (9, 4), (1, 10), (7, 7))
"""(T, S) in turn for rows of attention between two sequences; self-attention takes T."""

_random = np.random.default_rng(23)


def normal(*shape: int) -> np.ndarray:
    """Return normal random numbers."""
    return _random.normal(size=shape)


def coins(*shape: int) -> np.ndarray:
    """Return random booleans, three in five true."""
    return _random.random(shape) < 0.6


def attention(T: int = 5, S: int | None = None, call: Any = None, **fields: Any) -> ComponentCase:
    """Return self-attention over T positions, or attention to S others; ``call``: its options."""
    heads = {"num_heads": 3, "head_dim": H} | fields
    config = AttentionConfig(d_model=D, **heads)
    arguments = {"query": normal(B, T, D)}
    if S is not None:
        arguments["key"] = normal(B, S, config.key_width)
    return ComponentCase(config, arguments, call or {})


def latent(T: int = 5, call: Any = None, **fields: Any) -> ComponentCase:
    """Return latent attention over T positions."""
    sizes = {"num_heads": 3, "kv_rank": 5, "nope_dim": 7, "rope_dim": 4, "v_dim": 8} | fields
    causal = {"score": ScoreConfig(is_causal=True)} | sizes
    return ComponentCase(
        LatentAttentionConfig(d_model=D, **causal), {"x": normal(B, T, D)}, call or {}
    )


def layer(T: int = 5, memory: int | None = None, call: Any = None, **fields: Any) -> ComponentCase:
    """Return a block over T positions, with a memory of so many, its weights asked for."""
    given: dict[str, Any] = {"attention": LLAMA, "feed_forward": GATED} | fields
    arguments = {"x": normal(B, T, D)}
    if memory is not None:
        arguments["memory"] = normal(B, memory, given["cross_attention"].key_width)
    options = {"need_weights": True} | (call or {})
    return ComponentCase(BlockConfig(**given), arguments, options, keywords=("memory",))


def score(**fields: Any) -> ScoreConfig:
    """Return causal scores."""
    return ScoreConfig(**({"is_causal": True} | fields))


GROUPED = {"num_heads": 6, "num_kv_heads": 3}
SINGLE = {"num_heads": 5, "num_kv_heads": 1}
NO_BIAS = {"qkv_bias": False, "out_bias": False}
QKV_BIAS = {"qkv_bias": True, "out_bias": False}
ROTARY, PAIRS = RotaryConfig(), RotaryConfig(interleaved=True)
RMS, GEMMA_NORM = NormConfig(kind="rms"), NormConfig(kind="rms", unit_offset=True)
NORM_NO_BIAS = NormConfig(bias=False)
QK_HEAD, QK_WIDTH = QKNormConfig(), QKNormConfig(over="width")
YARN = YarnScaling(factor=4.0, max_seq_len=8, beta_fast=2.0, beta_slow=0.5)
SCALINGS = {
    "vicuna 16k: linear": LinearScaling(factor=4.0),
    "qwen long: dynamic, beyond": DynamicScaling(factor=2.0, max_seq_len=3),
    "qwen long: dynamic, within": DynamicScaling(factor=2.0, max_seq_len=64),
    "qwen2.5 1m: yarn": YARN,
    "gpt_oss: yarn, not truncated": replace(YARN, truncate=False),
    "deepseek: yarn, mscale": replace(YARN, mscale=0.7, mscale_all_dim=1.1),
    "yarn, given attention factor": replace(YARN, attention_factor=1.3),
    "llama3.1: llama3": Llama3Scaling(
        factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, max_seq_len=16
    ),
    "phi3: longrope, long": LongRopeScaling(
        short_factor=(1.0, 1.1, 1.3), long_factor=(1.5, 2.0, 4.0), max_seq_len=4, factor=8.0
    ),
    "phi3: longrope, short": LongRopeScaling(
        short_factor=(1.0, 1.1, 1.3), long_factor=(1.5, 2.0, 4.0), max_seq_len=32, factor=8.0
    ),
    "phi4: longrope, given attention factor": LongRopeScaling(
        short_factor=(1.0, 1.1, 1.3),
        long_factor=(1.5, 2.0, 4.0),
        max_seq_len=4,
        attention_factor=1.2,
    ),
}

PLAIN = FeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh")
GATED = GatedFeedForwardConfig(d_model=D, d_ff=F)
LLAMA = AttentionConfig(d_model=D, head_dim=H, rotary=ROTARY, score=score(), **(GROUPED | NO_BIAS))
GPT2 = AttentionConfig(d_model=D, num_heads=3, head_dim=H, score=score())
BERT = replace(GPT2, score=ScoreConfig())
CROSS = replace(BERT, kv_dim=MEMORY_D)
MIXTRAL = MixtureOfExpertsConfig(
    d_model=D, d_ff=F, num_experts=4, top_k=2, router=RouterConfig(normalize=True)
)
DEEPSEEK_MIXTURE = MixtureOfExpertsConfig(
    d_model=D,
    d_ff=F,
    num_experts=8,
    top_k=3,
    shared_d_ff=7,
    router=RouterConfig(
        scoring="sigmoid",
        normalize=True,
        scale=2.5,
        choice_bias=True,
        num_groups=4,
        top_groups=2,
    ),
)
GPT_OSS_MIXTURE = MixtureOfExpertsConfig(
    d_model=D,
    d_ff=F,
    num_experts=4,
    top_k=2,
    activation="clamped_swiglu",
    bias=True,
    router=RouterConfig(scoring="softmax_of_top", bias=True),
)
QWEN2_MIXTURE = replace(MIXTRAL, router=RouterConfig(), shared_d_ff=7, shared_gate=True)


def masks(T: int, S: int) -> dict[str, dict[str, Any]]:
    """Return options that hide keys, by what they are; some queries see nothing."""
    ids = np.sort(_random.integers(0, 3, (B, T)), -1)
    key_ids = np.sort(_random.integers(0, 3, (B, S)), -1)
    prefix = np.arange(S) < np.array([2, 4])[:, None, None]
    causal = np.arange(S) <= np.arange(T)[:, None]
    blocks = np.arange(S) // 3 == (np.arange(T) // 3)[:, None]
    return {
        "right padding": {"key_mask": np.arange(S) < np.array([[S], [S // 2]])},
        "left padding": {"key_mask": np.arange(S) >= np.array([[0], [S // 2]])},
        "one sample all padding": {"key_mask": np.arange(S) < np.array([[S], [0]])},
        "prefix-LM": {"mask": causal | prefix},
        "block-local": {"mask": blocks},
        "mask per head, rows that see nothing": {"mask": coins(B, 3, T, S) & coins(B, 3, T, 1)},
        "packed segments": {"segment_ids": (ids, key_ids)},
        "additive bias": {"bias": normal(B, 3, T, S)},
        "additive bias with -inf": {
            "bias": np.where(coins(B, T, S), normal(B, T, S), -np.inf)[:, None]
        },
        "mask and bias and padding": {
            "mask": coins(T, S),
            "bias": normal(3, T, S)[None],
            "key_mask": coins(B, S),
        },
    }
