"""Attention beside that of other models in ``transformers``: T5, BLOOM, Falcon and Whisper."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import BloomConfig, FalconConfig, T5Config, WhisperConfig
from transformers.models.bloom import modeling_bloom
from transformers.models.falcon import modeling_falcon
from transformers.models.t5 import modeling_t5
from transformers.models.whisper import modeling_whisper

from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    RelativeBiasConfig,
    RotaryConfig,
    ScoreConfig,
)
from parity_tests.peers.attention_peers import (
    CAUSAL,
    FUSED,
    KEY_MASK,
    D,
    H,
    N,
    T,
    additive_mask,
    attention_case,
    named,
    split_name,
    thirds_of_heads,
)
from parity_tests.support.harness import Arrays
from parity_tests.support.peers import Peer, Tensors, judge_peer

_whole: dict[str, Any] = {"d_model": FUSED, "num_heads": N}
_dense = {"dense": "out_proj"}


def _t5(*, decoder: bool) -> Peer:
    theirs = T5Config(
        d_model=D,
        d_kv=H,
        num_heads=N,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=6,
        is_decoder=decoder,
    )
    theirs._attn_implementation = "eager"
    score = ScoreConfig(scale=1.0, is_causal=decoder)
    bias = RelativeBiasConfig(num_buckets=8, max_distance=6, is_bidirectional=not decoder)
    config = AttentionConfig(
        d_model=D,
        num_heads=N,
        head_dim=H,
        qkv_bias=False,
        out_bias=False,
        score=score,
        position_bias=bias,
    )

    def call(peer: Any, inputs: Tensors) -> Tensors:
        output, _, weights = peer(inputs["query"], mask=additive_mask(score))
        return named(output, weights)

    return Peer(
        lambda: modeling_t5.T5Attention(theirs, has_relative_attention_bias=True, layer_idx=0),
        attention_case(config),
        call,
        {
            "q": "q_proj",
            "k": "k_proj",
            "v": "v_proj",
            "o": "out_proj",
            "relative_attention_bias": "position_bias.bias_embed",
        },
    )


def _bloom() -> Peer:
    theirs = BloomConfig(hidden_size=FUSED, n_head=N, attention_dropout=0.0, hidden_dropout=0.0)

    def call(peer: Any, inputs: Tensors) -> Tensors:
        x = inputs["query"]
        alibi = modeling_bloom.build_alibi_tensor(torch.from_numpy(KEY_MASK * 1), N, x.dtype)
        mask = additive_mask(CAUSAL)
        options: dict[str, Any] = {"attention_mask": mask, "output_attentions": True}
        output, weights = peer(x, torch.zeros_like(x), alibi=alibi, **options)
        return named(output, weights)

    return Peer(
        lambda: modeling_bloom.BloomAttention(theirs, layer_idx=0),
        attention_case(AttentionConfig(**_whole, score=CAUSAL, position_bias=AlibiConfig())),
        call,
        _dense,
        thirds_of_heads,
    )


def _falcon() -> Peer:
    theirs = FalconConfig(
        hidden_size=FUSED,
        num_attention_heads=N,
        multi_query=True,
        new_decoder_architecture=False,
        alibi=False,
        bias=True,
        rope_parameters={"rope_type": "default", "rope_theta": 100.0},
    )
    theirs._attn_implementation = "eager"

    def call(peer: Any, inputs: Tensors) -> Tensors:
        x = inputs["query"]
        output, weights = peer(
            x,
            alibi=None,
            attention_mask=additive_mask(CAUSAL),
            position_embeddings=modeling_falcon.FalconRotaryEmbedding(theirs)(
                x, torch.arange(T)[None]
            ),
            output_attentions=True,
        )
        return named(output, weights)

    config = AttentionConfig(
        **_whole, num_kv_heads=1, score=CAUSAL, rotary=RotaryConfig(theta=100.0)
    )
    return Peer(
        lambda: modeling_falcon.FalconAttention(theirs, layer_idx=0),
        attention_case(config),
        call,
        _dense,
        _heads_then_key_and_value,
    )


def _heads_then_key_and_value(name: str, array: np.ndarray) -> Arrays:
    """Split a fused projection that holds all query heads, then one key and one value head."""
    if "query_key_value" not in name:
        return {name: array}
    return split_name(name, np.split(array, [FUSED, FUSED + H]))


def _whisper(*, memory: bool) -> Peer:
    theirs = WhisperConfig(d_model=FUSED)
    theirs._attn_implementation = "eager"

    def call(peer: Any, inputs: Tensors) -> Tensors:
        mask = None if memory else additive_mask(CAUSAL)
        return named(
            *peer(inputs["query"], key_value_states=inputs.get("key"), attention_mask=mask)
        )

    config = AttentionConfig(
        **_whole, qkv_bias=(True, False, True), score=ScoreConfig(is_causal=not memory)
    )
    return Peer(
        lambda: modeling_whisper.WhisperAttention(
            FUSED, N, is_decoder=True, layer_idx=0, config=theirs
        ),
        attention_case(config, memory=memory),
        call,
    )


PEERS = {
    "t5 encoder": _t5(decoder=False),
    "t5 decoder": _t5(decoder=True),
    "bloom": _bloom(),
    "falcon": _falcon(),
    "whisper": _whisper(memory=False),
    "whisper, cross": _whisper(memory=True),
}


@pytest.mark.parametrize("name", PEERS)
def test_as_in_transformers(name):
    judge_peer(PEERS[name])
