"""Attention through low-rank latents."""

from typing import Any

import numpy as np

from diptych.spec import LatentAttentionConfig, NormConfig, RotaryConfig, ScoreConfig
from parity_tests.attention.oracle import Array
from parity_tests.components.formulas import Tensors, linear, under
from parity_tests.components.room import Example, Room, X
from parity_tests.components.rooms.attention import attend
from parity_tests.components.rooms.multi_head_attention import heads, joined, positions_of
from parity_tests.components.rooms.norms import norm
from parity_tests.components.rooms.rotary import rotate
from parity_tests.support.sizes import D, H, N


def latent_attention(
    config: Any, tensors: Tensors, x: Array, mask: Array | None = None, **options: Any
) -> tuple[Array, Array | None]:
    """Low-rank latents with a decoupled rotary part (DeepSeek-V2 2024, section 2.1)."""
    N, T = config.num_heads, x.shape[-2]
    at_queries, at_keys, length = positions_of(T, T, options)
    if config.q_rank is None:
        query = linear(tensors, "q_proj", x)
    else:
        latent = linear(tensors, "q_down_proj", x)
        query = linear(tensors, "q_up_proj", norm(config.norm, under("q_norm", tensors), latent))
    query = heads(query, N)
    compressed = linear(tensors, "kv_down_proj", x)
    latent, shared = np.split(compressed, [config.kv_rank], axis=-1)
    up = linear(tensors, "kv_up_proj", norm(config.norm, under("kv_norm", tensors), latent))
    key, value = np.split(heads(up, N), [config.nope_dim], axis=-1)
    shared = rotate(config.rotary, shared[..., None, :, :], at_keys, length)
    query_plain, query_turned = np.split(query, [config.nope_dim], axis=-1)
    query_turned = rotate(config.rotary, query_turned, at_queries, length)
    output, weights = attend(
        config.score,
        np.concatenate([query_plain, query_turned], axis=-1),
        np.concatenate([key, np.repeat(shared, N, axis=-3)], axis=-1),
        value,
        mask=mask,
        **options,
    )
    return linear(tensors, "out_proj", joined(output)), weights


LATENT_ATTENTION = Room(
    Example(
        LatentAttentionConfig(
            d_model=D, num_heads=N, q_rank=8, kv_rank=9, nope_dim=4, rope_dim=6, v_dim=H
        ),
        (X,),
    ),
    changes={
        "d_model": 2 * D,
        "num_heads": 5,
        "kv_rank": 7,
        "nope_dim": 3,
        "rope_dim": 4,
        "v_dim": 4,
        "q_rank": None,
        "qkv_bias": True,
        "out_bias": True,
        "attention_dropout": 0.5,
        "norm": NormConfig(),
        "score": ScoreConfig(is_causal=True),
        "rotary": RotaryConfig(theta=10.0),
    },
    formula=latent_attention,
    is_slow=True,
)
