"""Every kind of causal attention that a cache serves.

B batch   T positions   D model width   N query heads   K key/value heads   H head width
"""

from typing import Any

from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    Config,
    DynamicScaling,
    LatentAttentionConfig,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    NormConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    ScoreConfig,
    YarnScaling,
)

B, T, D, N, K, H = 3, 5, 14, 4, 2, 6
LATENT: dict[str, Any] = {"kv_rank": 11, "nope_dim": 3, "rope_dim": 6, "v_dim": 9}

ROTARY: dict[str, RotaryConfig] = {
    "rotary": RotaryConfig(theta=100.0),
    "interleaved": RotaryConfig(theta=100.0, interleaved=True),
    "partial": RotaryConfig(theta=100.0, dim=4),
    "linear": RotaryConfig(scaling=LinearScaling(factor=2.0)),
    "dynamic": RotaryConfig(scaling=DynamicScaling(factor=2.0, max_seq_len=3)),
    "yarn": RotaryConfig(scaling=YarnScaling(factor=4.0, max_seq_len=16)),
    "llama3": RotaryConfig(
        theta=100.0,
        scaling=Llama3Scaling(
            factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, max_seq_len=64
        ),
    ),
    "longrope": RotaryConfig(
        scaling=LongRopeScaling(
            short_factor=(1.0, 1.1, 1.2), long_factor=(1.5, 2.5, 3.5), max_seq_len=3, factor=2.0
        )
    ),
}


def _attention(
    *,
    window: int | None = None,
    softcap: float | None = None,
    scale: float | None = None,
    sinks: bool = False,
    **options: Any,
) -> AttentionConfig:
    score = ScoreConfig(is_causal=True, window=window, softcap=softcap, scale=scale, sinks=sinks)
    return AttentionConfig(**({"d_model": D, "num_heads": N, "head_dim": H} | options), score=score)


def _latent(*, window: int | None = None, **options: Any) -> LatentAttentionConfig:
    score = ScoreConfig(is_causal=True, window=window)
    return LatentAttentionConfig(d_model=D, num_heads=N, **LATENT, **options, score=score)


CACHED: dict[str, Config] = {
    "plain": _attention(),
    "grouped": _attention(num_kv_heads=K),
    "window 1": _attention(window=1),
    "window 3": _attention(window=3),
    "window of the capacity": _attention(window=T),
    "alibi": _attention(position_bias=AlibiConfig()),
    "alibi, window 3": _attention(position_bias=AlibiConfig(), window=3),
    "relative bias": _attention(
        position_bias=RelativeBiasConfig(num_buckets=4, max_distance=5, is_bidirectional=False)
    ),
    "q/k norm of heads": _attention(qk_norm=QKNormConfig()),
    "q/k norm of the width": _attention(
        qk_norm=QKNormConfig(norm=NormConfig(kind="layer"), over="width"), num_kv_heads=K
    ),
    "sinks": _attention(sinks=True),
    "softcap": _attention(softcap=1.5, scale=0.7),
    "rotary, window 3": _attention(rotary=ROTARY["rotary"], window=3),
    "dynamic, window 3": _attention(rotary=ROTARY["dynamic"], window=3),
    "everything": _attention(
        num_kv_heads=K,
        qkv_bias=(True, False, True),
        out_bias=False,
        window=3,
        softcap=1.5,
        sinks=True,
        rotary=ROTARY["yarn"],
        qk_norm=QKNormConfig(norm=NormConfig(kind="rms", unit_offset=True)),
        position_bias=AlibiConfig(),
    ),
    "latent": _latent(),
    "latent, latent queries": _latent(q_rank=8, qkv_bias=True, out_bias=True),
    "latent, window 3": _latent(window=3),
    "latent, dynamic": _latent(rotary=ROTARY["dynamic"]),
} | {name: _attention(rotary=rotary) for name, rotary in ROTARY.items()}
"""Attention by name; a capacity of T serves all."""
