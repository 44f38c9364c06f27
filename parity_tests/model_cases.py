"""The table of attention and block calls as model families make them: one row per combination.

B batch   T query positions   S key positions   D model width   H head width
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from diptych.spec import (
    AlibiConfig,
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
    RelativeBiasConfig,
    RotaryConfig,
    RouterConfig,
    ScoreConfig,
    YarnScaling,
)
from parity_tests.component_case import ComponentCase

B, D, H, MEMORY_D, F = 2, 11, 6, 7, 13
LENGTHS = ((5, 5), (3, 8), (9, 4), (1, 10), (7, 7))
"""(T, S) in turn for rows of attention between two sequences; self-attention takes T."""

_random = np.random.default_rng(23)


def _normal(*shape: int) -> np.ndarray:
    return _random.normal(size=shape)


def _coins(*shape: int) -> np.ndarray:
    return _random.random(shape) < 0.6


def attention(T: int = 5, S: int | None = None, call: Any = None, **fields: Any) -> ComponentCase:
    """Return self-attention over T positions, or attention to S others; ``call``: its options."""
    heads = {"num_heads": 3, "head_dim": H} | fields
    config = AttentionConfig(d_model=D, **heads)
    arguments = {"query": _normal(B, T, D)}
    if S is not None:
        arguments["key"] = _normal(B, S, config.key_width)
    return ComponentCase(config, arguments, call or {})


def latent(T: int = 5, call: Any = None, **fields: Any) -> ComponentCase:
    """Return latent attention over T positions."""
    sizes = {"num_heads": 3, "kv_rank": 5, "nope_dim": 7, "rope_dim": 4, "v_dim": 8} | fields
    causal = {"score": ScoreConfig(is_causal=True)} | sizes
    return ComponentCase(
        LatentAttentionConfig(d_model=D, **causal), {"x": _normal(B, T, D)}, call or {}
    )


def layer(T: int = 5, memory: int | None = None, call: Any = None, **fields: Any) -> ComponentCase:
    """Return a block over T positions, with a memory of so many, its weights asked for."""
    given: dict[str, Any] = {"attention": LLAMA, "feed_forward": GATED} | fields
    arguments = {"x": _normal(B, T, D)}
    if memory is not None:
        arguments["memory"] = _normal(B, memory, given["cross_attention"].key_width)
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


def _masks(T: int, S: int) -> dict[str, dict[str, Any]]:
    """Options that hide keys, by what they are; some queries see nothing."""
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
        "mask per head, rows that see nothing": {"mask": _coins(B, 3, T, S) & _coins(B, 3, T, 1)},
        "packed segments": {"segment_ids": (ids, key_ids)},
        "additive bias": {"bias": _normal(B, 3, T, S)},
        "additive bias with -inf": {
            "bias": np.where(_coins(B, T, S), _normal(B, T, S), -np.inf)[:, None]
        },
        "mask and bias and padding": {
            "mask": _coins(T, S),
            "bias": _normal(3, T, S)[None],
            "key_mask": _coins(B, S),
        },
    }


def _rows() -> Iterator[tuple[str, ComponentCase]]:
    yield from _classic()
    yield from _rotated()
    yield from _structures()
    yield from _biased()
    yield from _crossing()
    yield from _latent()
    yield from _blocks()


def _classic() -> Iterator[tuple[str, ComponentCase]]:
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
            call={"mask": _coins(5, 5) & (np.arange(5) != 2)[:, None]},
        ),
    )
    yield "one position", attention(1, score=score())
    yield "no position", attention(0, score=score(), rotary=ROTARY)
    yield "not asked for weights", attention(score=score(), call={"need_weights": False})


def _rotated() -> Iterator[tuple[str, ComponentCase]]:
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


def _structures() -> Iterator[tuple[str, ComponentCase]]:
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
    for name, call in _masks(7, 7).items():
        rotary = {"rotary": ROTARY} if "mask" in name else {}
        yield f"self, {name}", attention(7, call=call, score=ScoreConfig(scale=0.7), **rotary)
    for name, call in _masks(4, 6).items():
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


def _biased() -> Iterator[tuple[str, ComponentCase]]:
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
        attention(**t5, position_bias=small, call={"bias": _normal(5, 5)[None, None]}),
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


def _crossing() -> Iterator[tuple[str, ComponentCase]]:
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
        attention(9, 4, kv_dim=MEMORY_D, qkv_bias=False, call={"key_mask": _coins(B, 4)}),
    )
    three = attention(4, 6)
    three.arguments["value"] = _normal(B, 6, D)
    yield "keys and values of two sequences", three
    yield "cross, one query", attention(1, 9, kv_dim=MEMORY_D)
    yield "cross, no memory", attention(4, 0, kv_dim=MEMORY_D)


def _latent() -> Iterator[tuple[str, ComponentCase]]:
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
        latent(score=ScoreConfig(), call={"mask": _coins(B, 5, 5) & (np.arange(5) != 1)[:, None]}),
    )
    yield "latent, one position", latent(1, q_rank=9, call={"offset": 0})


def _blocks() -> Iterator[tuple[str, ComponentCase]]:
    yield "gpt2 block: pre", layer(attention=GPT2, feed_forward=PLAIN)
    yield (
        "bert block: post, padding",
        layer(
            attention=BERT,
            feed_forward=replace(PLAIN, activation="gelu"),
            norm_placement="post",
            call={"key_mask": np.arange(5) < np.array([[5], [3]])},
        ),
    )
    yield "llama block: rms, gated silu", layer(norm=RMS)
    yield (
        "gemma1 block: rms 1 + w, gated gelu",
        layer(norm=GEMMA_NORM, feed_forward=replace(GATED, activation="gelu_tanh")),
    )
    yield (
        "gemma2 block: sandwich",
        layer(
            norm=GEMMA_NORM,
            norm_placement="sandwich",
            feed_forward=replace(GATED, activation="gelu_tanh"),
            attention=replace(LLAMA, score=score(window=3, softcap=5.0)),
        ),
    )
    yield (
        "olmo2 block: branch, q/k norm",
        layer(norm=RMS, norm_placement="branch", attention=replace(LLAMA, qk_norm=QK_WIDTH)),
    )
    yield (
        "gpt_neox block: parallel",
        layer(
            attention=replace(GPT2, rotary=RotaryConfig(dim=2)),
            feed_forward=replace(PLAIN, activation="gelu"),
            norm_placement="parallel",
        ),
    )
    yield (
        "gpt_j block: parallel, one norm",
        layer(
            attention=replace(LLAMA, num_kv_heads=None, rotary=PAIRS),
            feed_forward=PLAIN,
            norm_placement="parallel_shared",
        ),
    )
    yield (
        "cohere block: parallel, one norm without bias, gated",
        layer(
            norm=NORM_NO_BIAS,
            attention=replace(LLAMA, rotary=PAIRS),
            norm_placement="parallel_shared",
        ),
    )
    yield (
        "modernbert first layer: no attention norm",
        layer(
            norm=NORM_NO_BIAS,
            attention_norm=False,
            attention=replace(BERT, rotary=ROTARY, **NO_BIAS),
            feed_forward=replace(GATED, activation="gelu"),
        ),
    )
    yield (
        "dinov2 block: layer scale",
        layer(attention=BERT, feed_forward=replace(PLAIN, activation="gelu"), layer_scale=0.1),
    )
    yield (
        "clip block: quick gelu, causal",
        layer(attention=GPT2, feed_forward=replace(PLAIN, activation="quick_gelu")),
    )
    yield (
        "opt block: relu, post",
        layer(
            attention=GPT2, feed_forward=replace(PLAIN, activation="relu"), norm_placement="post"
        ),
    )
    yield (
        "bart decoder block: post, cross",
        layer(
            4,
            7,
            attention=GPT2,
            cross_attention=BERT,
            feed_forward=replace(PLAIN, activation="gelu"),
            norm_placement="post",
        ),
    )
    yield (
        "whisper decoder block: pre, cross, padding",
        layer(
            4,
            7,
            attention=replace(GPT2, qkv_bias=(True, False, True)),
            cross_attention=replace(BERT, qkv_bias=(True, False, True)),
            feed_forward=replace(PLAIN, activation="gelu"),
            call={"memory_mask": np.arange(7) < np.array([[7], [4]])},
        ),
    )
    yield (
        "t5 decoder block: rms, cross, relative bias, no biases",
        layer(
            4,
            7,
            norm=RMS,
            attention=replace(
                GPT2,
                position_bias=RelativeBiasConfig(
                    num_buckets=8, max_distance=6, is_bidirectional=False
                ),
                **NO_BIAS,
            ),
            cross_attention=replace(BERT, **NO_BIAS),
            feed_forward=replace(PLAIN, activation="relu", bias=False),
        ),
    )
    yield (
        "cross to a memory of another width, sandwich",
        layer(4, 7, cross_attention=CROSS, norm=RMS, norm_placement="sandwich"),
    )
    yield (
        "cross, branch, layer scale",
        layer(4, 7, cross_attention=CROSS, norm=RMS, norm_placement="branch", layer_scale=0.3),
    )
    yield "mixtral block: softmax, normalised", layer(norm=RMS, feed_forward=MIXTRAL)
    yield (
        "qwen2_moe block: softmax, shared expert with a gate",
        layer(norm=RMS, feed_forward=QWEN2_MIXTURE),
    )
    yield (
        "gpt_oss block: sinks, softmax of the top, clamped",
        layer(
            norm=RMS,
            attention=replace(
                LLAMA, qkv_bias=True, out_bias=True, score=score(sinks=True, window=3)
            ),
            feed_forward=GPT_OSS_MIXTURE,
        ),
    )
    yield (
        "deepseek_v3 block: latent, sigmoid routing in groups, shared expert",
        layer(norm=RMS, attention=latent(q_rank=9).config, feed_forward=DEEPSEEK_MIXTURE),
    )
    yield (
        "bloom block: alibi",
        layer(attention=replace(GPT2, position_bias=AlibiConfig()), feed_forward=PLAIN),
    )
    yield "block of one position", layer(1, norm=RMS)


MODEL_CASES: dict[str, ComponentCase] = dict(_rows())

VARIANTS = (
    "bert: bidirectional",
    "gpt2: causal",
    "falcon 7b: multi-query",
    "vit 22b: q/k layer norm per head",
    "longformer: window both ways",
    "attention sinks",
    "llama: rotary",
    "qwen3: q/k norm per head, grouped",
    "olmo2: q/k norm full width",
    "gemma2 local: window, softcap, scale, grouped",
    "cohere: interleaved, grouped",
    "gpt_neox: partial rotary, bias",
    "qwen2.5 1m: yarn scaling",
    "phi3: longrope, long scaling",
    "self, packed segments",
    "t5 encoder: relative bias both ways, no scale",
    "bloom: alibi, 6 heads",
    "mllama cross: width of the memory, q/k norm, grouped",
    "deepseek_v3: q rank",
    "gemma2 block: sandwich",
    "gpt_neox block: parallel",
    "mixtral block: softmax, normalised",
    "whisper decoder block: pre, cross, padding",
)
"""One row of every variant: those that are run uncompiled too."""
