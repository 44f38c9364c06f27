"""Rows of ``cases``: whole blocks."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from diptych.spec import AlibiConfig, RelativeBiasConfig, RotaryConfig
from parity_tests.components.case import ComponentCase
from parity_tests.models.parts import (
    BERT,
    CROSS,
    DEEPSEEK_MIXTURE,
    GATED,
    GEMMA_NORM,
    GPT2,
    GPT_OSS_MIXTURE,
    LLAMA,
    MIXTRAL,
    NO_BIAS,
    NORM_NO_BIAS,
    PAIRS,
    PLAIN,
    QK_WIDTH,
    QWEN2_MIXTURE,
    RMS,
    ROTARY,
    latent,
    layer,
    score,
)


def block_rows() -> Iterator[tuple[str, ComponentCase]]:
    """Yield blocks: placements, norms, feed-forwards, cross-attention."""
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
