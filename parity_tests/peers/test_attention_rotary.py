"""Attention beside that of the rotary models in ``transformers``."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    CohereConfig,
    DeepseekV3Config,
    Gemma2Config,
    GPTNeoXConfig,
    GptOssConfig,
    LlamaConfig,
    Olmo2Config,
    Qwen3Config,
)
from transformers.models.cohere import modeling_cohere
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.llama import modeling_llama
from transformers.models.olmo2 import modeling_olmo2
from transformers.models.qwen3 import modeling_qwen3

from diptych.spec import (
    AttentionConfig,
    LatentAttentionConfig,
    Llama3Scaling,
    NormConfig,
    QKNormConfig,
    RotaryConfig,
    ScoreConfig,
    YarnScaling,
)
from parity_tests.peers.attention_peers import (
    CAUSAL,
    FUSED,
    D,
    H,
    K,
    N,
    T,
    additive_mask,
    attention_case,
    named,
    thirds_of_heads,
)
from parity_tests.support.peers import Peer, Tensors, judge_peer


def _rotated(theirs: Any, module: Any, family: str, config: Any, **options: Any) -> Peer:
    """Return a peer that is given cosines and sines."""
    theirs._attn_implementation = "eager"

    def call(peer: Any, inputs: Tensors) -> Tensors:
        x = inputs["query"]
        table = getattr(module, f"{family}RotaryEmbedding")(theirs)
        at = table(x, torch.arange(T)[None])
        mask = additive_mask(config.score)
        return named(*peer(x, position_embeddings=at, attention_mask=mask)[:2])

    def build() -> torch.nn.Module:
        return getattr(module, f"{family}Attention")(theirs, layer_idx=0)

    names = options.pop("names", {"o_proj": "out_proj"})
    return Peer(build, attention_case(config), call, names, **options)


def _rope(kind: str = "default", theta: float = 100.0, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **settings}}


_sizes = {
    "hidden_size": D,
    "num_attention_heads": N,
    "num_key_value_heads": K,
    "head_dim": H,
    "num_hidden_layers": 1,
    "vocab_size": 11,
    "pad_token_id": 0,
}
_ours = {"d_model": D, "num_heads": N, "num_kv_heads": K, "head_dim": H}
_plain = {"qkv_bias": False, "out_bias": False}
_rotary = RotaryConfig(theta=100.0)


def _deepseek(q_rank: int | None, bias: bool, ours: LatentAttentionConfig, **rope: Any) -> Peer:
    config = DeepseekV3Config(
        hidden_size=D,
        num_attention_heads=N,
        num_key_value_heads=N,
        q_lora_rank=q_rank,
        kv_lora_rank=11,
        qk_nope_head_dim=4,
        qk_rope_head_dim=H,
        v_head_dim=9,
        num_hidden_layers=1,
        attention_bias=bias,
        max_position_embeddings=256,
        **_rope(**rope),
    )
    names = {
        "o_proj": "out_proj",
        "q_a_proj": "q_down_proj",
        "q_a_layernorm": "q_norm",
        "q_b_proj": "q_up_proj",
        "kv_a_proj_with_mqa": "kv_down_proj",
        "kv_a_layernorm": "kv_norm",
        "kv_b_proj": "kv_up_proj",
    }
    return _rotated(config, modeling_deepseek_v3, "DeepseekV3", ours, names=names)


_latent = {"d_model": D, "num_heads": N, "kv_rank": 11, "nope_dim": 4, "rope_dim": H, "v_dim": 9}
_yarn = {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.7}
_yarn_scale = (4 + H) ** -0.5 * (0.1 * 0.7 * np.log(40.0) + 1.0) ** 2


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_types = {"layer_types": ["sliding_attention"], "sliding_window": 3}


PEERS = {
    "llama 3.1": _rotated(
        LlamaConfig(**_sizes, **_rope("llama3", **LLAMA3, original_max_position_embeddings=64)),
        modeling_llama,
        "Llama",
        AttentionConfig(
            **_ours,
            **_plain,
            score=CAUSAL,
            rotary=RotaryConfig(theta=100.0, scaling=Llama3Scaling(**LLAMA3, max_seq_len=64)),
        ),
    ),
    "qwen3": _rotated(
        Qwen3Config(**_sizes, **_rope()),
        modeling_qwen3,
        "Qwen3",
        AttentionConfig(**_ours, **_plain, score=CAUSAL, rotary=_rotary, qk_norm=QKNormConfig()),
    ),
    "olmo2": _rotated(
        Olmo2Config(**_sizes, rms_norm_eps=1e-3, **_rope()),
        modeling_olmo2,
        "Olmo2",
        AttentionConfig(
            **_ours,
            **_plain,
            score=CAUSAL,
            rotary=_rotary,
            qk_norm=QKNormConfig(norm=NormConfig(kind="rms", eps=1e-3), over="width"),
        ),
    ),
    "gpt_oss": _rotated(
        GptOssConfig(
            **_sizes,
            **_types,
            attention_bias=True,
            **_rope("yarn", factor=32.0, original_max_position_embeddings=64, truncate=False),
        ),
        modeling_gpt_oss,
        "GptOss",
        AttentionConfig(
            **_ours,
            score=ScoreConfig(is_causal=True, window=3, sinks=True),
            rotary=RotaryConfig(
                theta=100.0, scaling=YarnScaling(factor=32.0, max_seq_len=64, truncate=False)
            ),
        ),
        names={"o_proj": "out_proj", "sinks": "sinks_param"},
    ),
    "gemma2": _rotated(
        Gemma2Config(
            **_sizes, **_types, query_pre_attn_scalar=7, attn_logit_softcapping=1.5, **_rope()
        ),
        modeling_gemma2,
        "Gemma2",
        AttentionConfig(
            **_ours,
            **_plain,
            score=ScoreConfig(is_causal=True, window=3, softcap=1.5, scale=7**-0.5),
            rotary=_rotary,
        ),
    ),
    "cohere": _rotated(
        CohereConfig(**_sizes, use_qk_norm=False, **_rope()),
        modeling_cohere,
        "Cohere",
        AttentionConfig(
            **_ours, **_plain, score=CAUSAL, rotary=RotaryConfig(theta=100.0, interleaved=True)
        ),
    ),
    "gpt_neox": _rotated(
        GPTNeoXConfig(hidden_size=FUSED, num_attention_heads=N, **_rope(partial_rotary_factor=0.5)),
        modeling_gpt_neox,
        "GPTNeoX",
        AttentionConfig(
            d_model=FUSED, num_heads=N, score=CAUSAL, rotary=RotaryConfig(theta=100.0, dim=H // 2)
        ),
        names={"dense": "out_proj"},
        split=thirds_of_heads,
    ),
    "deepseek_v3": _deepseek(
        None,
        False,
        LatentAttentionConfig(
            **_latent, score=CAUSAL, rotary=RotaryConfig(theta=100.0, interleaved=True)
        ),
    ),
    "deepseek_v3, latent queries, yarn": _deepseek(
        10,
        True,
        LatentAttentionConfig(
            **_latent,
            q_rank=10,
            qkv_bias=True,
            out_bias=True,
            score=ScoreConfig(is_causal=True, scale=float(_yarn_scale)),
            rotary=RotaryConfig(
                theta=100.0, interleaved=True, scaling=YarnScaling(**_yarn, max_seq_len=64)
            ),
        ),
        kind="yarn",
        **_yarn,
        original_max_position_embeddings=64,
    ),
}


@pytest.mark.parametrize("name", PEERS)
def test_as_in_transformers(name):
    judge_peer(PEERS[name])
