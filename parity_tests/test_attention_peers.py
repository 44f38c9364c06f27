"""Attention beside that of the models in ``transformers``, in float64, their float32 casts lifted.

B batch   T positions   S memory positions   N query heads   K key/value heads   H head width
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    BloomConfig,
    CohereConfig,
    DeepseekV3Config,
    FalconConfig,
    Gemma2Config,
    GPTNeoXConfig,
    GptOssConfig,
    LlamaConfig,
    Olmo2Config,
    Qwen3Config,
    T5Config,
    WhisperConfig,
)
from transformers.models.bloom import modeling_bloom
from transformers.models.cohere import modeling_cohere
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.falcon import modeling_falcon
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.llama import modeling_llama
from transformers.models.olmo2 import modeling_olmo2
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.t5 import modeling_t5
from transformers.models.whisper import modeling_whisper

from diptych.parity.compare import compare_exact
from diptych.spec import (
    AlibiConfig,
    AttentionConfig,
    Config,
    LatentAttentionConfig,
    Llama3Scaling,
    NormConfig,
    QKNormConfig,
    RelativeBiasConfig,
    RotaryConfig,
    ScoreConfig,
    YarnScaling,
)
from parity_tests.component_runs import jax_module, torch_module
from parity_tests.harness import Arrays, from_torch
from parity_tests.lift_float32 import float64_throughout
from parity_tests.panels import JAX, TORCH

B, T, S, N, K, H, D = 2, 7, 5, 6, 3, 8, 18
FUSED = N * H
"""Width of the models whose heads divide it."""
KEY_MASK = np.arange(T) < np.array([[T], [5]])  # so that a window of 3 leaves every row a key
CAUSAL = ScoreConfig(is_causal=True)

Call = Callable[[Any, torch.Tensor, torch.Tensor], Any]
"""From a peer, its input and its additive mask (B, 1, T, keys) to output and weights."""


@dataclass(frozen=True)
class Peer:
    """Attention of a model.

    Attributes:
        build: Returns the module, in float64.
        config: What it is to us.
        call: Calls it.
        names: Our modules' names by the peer's.
        split: Turns its fused projections, by name, into ours.
        memory: Whether it attends to another sequence.
    """

    build: Callable[[], torch.nn.Module]
    config: Config
    call: Call
    names: dict[str, str] = field(default_factory=lambda: {"o_proj": "out_proj"})
    split: Callable[[str, np.ndarray], Arrays] = lambda name, array: {name: array}
    memory: bool = False


def _rotated(config: Any, module: Any, family: str) -> Peer:
    """Return the parts of a peer that is given cosines and sines."""
    config._attn_implementation = "eager"

    def call(peer: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        table = getattr(module, f"{family}RotaryEmbedding")(config)
        return peer(x, position_embeddings=table(x, torch.arange(T)[None]), attention_mask=mask)

    def build() -> torch.nn.Module:
        return getattr(module, f"{family}Attention")(config, layer_idx=0)

    return {"build": build, "call": call}


def _rope(kind: str = "default", theta: float = 100.0, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": theta, **settings}}


def _thirds_of_heads(name: str, array: np.ndarray) -> Arrays:
    """Split a fused projection whose every head holds its query, key and value."""
    if "query_key_value" not in name:
        return {name: array}
    parts = np.moveaxis(array.reshape(N, 3, H, *array.shape[1:]), 1, 0)
    return _named(name, [part.reshape(FUSED, *array.shape[1:]) for part in parts])


def _heads_then_key_and_value(name: str, array: np.ndarray) -> Arrays:
    """Split a fused projection that holds all query heads, then one key and one value head."""
    if "query_key_value" not in name:
        return {name: array}
    return _named(name, np.split(array, [FUSED, FUSED + H]))


def _named(name: str, parts: Any) -> Arrays:
    kind = name.split(".")[-1]
    return {
        f"{p}.{kind}": part for p, part in zip(("q_proj", "k_proj", "v_proj"), parts, strict=True)
    }


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
_whole = {"d_model": FUSED, "num_heads": N}
_rotary = RotaryConfig(theta=100.0)
_dense = {"dense": "out_proj"}


def _deepseek(q_rank: int | None, *, bias: bool, **rope: Any) -> Any:
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
    parts = _rotated(config, modeling_deepseek_v3, "DeepseekV3")
    names = {
        "o_proj": "out_proj",
        "q_a_proj": "q_down_proj",
        "q_a_layernorm": "q_norm",
        "q_b_proj": "q_up_proj",
        "kv_a_proj_with_mqa": "kv_down_proj",
        "kv_a_layernorm": "kv_norm",
        "kv_b_proj": "kv_up_proj",
    }
    return parts | {"names": names}


_latent = {"d_model": D, "num_heads": N, "kv_rank": 11, "nope_dim": 4, "rope_dim": H, "v_dim": 9}
_yarn = {"factor": 40.0, "mscale": 1.0, "mscale_all_dim": 0.7}
_yarn_scale = (4 + H) ** -0.5 * (0.1 * 0.7 * np.log(40.0) + 1.0) ** 2


def _t5(*, decoder: bool) -> Peer:
    config = T5Config(
        d_model=D,
        d_kv=H,
        num_heads=N,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=6,
        is_decoder=decoder,
    )
    config._attn_implementation = "eager"
    score = ScoreConfig(scale=1.0, is_causal=decoder)
    bias = RelativeBiasConfig(num_buckets=8, max_distance=6, is_bidirectional=not decoder)
    return Peer(
        lambda: modeling_t5.T5Attention(config, has_relative_attention_bias=True, layer_idx=0),
        AttentionConfig(
            d_model=D, num_heads=N, head_dim=H, **_plain, score=score, position_bias=bias
        ),
        lambda peer, x, mask: peer(x, mask=mask),
        {
            "q": "q_proj",
            "k": "k_proj",
            "v": "v_proj",
            "o": "out_proj",
            "relative_attention_bias": "position_bias.bias_embed",
        },
    )


def _bloom() -> Peer:
    config = BloomConfig(hidden_size=FUSED, n_head=N, attention_dropout=0.0, hidden_dropout=0.0)

    def call(peer: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        alibi = modeling_bloom.build_alibi_tensor(torch.from_numpy(KEY_MASK * 1), N, x.dtype)
        return peer(
            x, torch.zeros_like(x), alibi=alibi, attention_mask=mask, output_attentions=True
        )

    ours = AttentionConfig(**_whole, score=CAUSAL, position_bias=AlibiConfig())
    return Peer(
        lambda: modeling_bloom.BloomAttention(config, layer_idx=0),
        ours,
        call,
        _dense,
        _thirds_of_heads,
    )


def _falcon() -> Peer:
    config = FalconConfig(
        hidden_size=FUSED,
        num_attention_heads=N,
        multi_query=True,
        new_decoder_architecture=False,
        alibi=False,
        bias=True,
        **_rope(),
    )
    config._attn_implementation = "eager"

    def call(peer: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        table = modeling_falcon.FalconRotaryEmbedding(config)
        return peer(
            x,
            alibi=None,
            attention_mask=mask,
            position_embeddings=table(x, torch.arange(T)[None]),
            output_attentions=True,
        )

    return Peer(
        lambda: modeling_falcon.FalconAttention(config, layer_idx=0),
        AttentionConfig(**_whole, num_kv_heads=1, score=CAUSAL, rotary=_rotary),
        call,
        _dense,
        _heads_then_key_and_value,
    )


def _whisper(*, memory: bool) -> Peer:
    config = WhisperConfig(d_model=FUSED)
    config._attn_implementation = "eager"

    def call(peer: Any, x: torch.Tensor, mask: torch.Tensor) -> Any:
        other = torch.from_numpy(MEMORY) if memory else None
        return peer(x, key_value_states=other, attention_mask=mask, output_attentions=True)

    score = ScoreConfig(is_causal=not memory)
    return Peer(
        lambda: modeling_whisper.WhisperAttention(
            FUSED, N, is_decoder=True, layer_idx=0, config=config
        ),
        AttentionConfig(**_whole, qkv_bias=(True, False, True), score=score),
        call,
        {},
        memory=memory,
    )


MEMORY = np.random.default_rng(5).normal(size=(B, S, FUSED))
LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
_types = {"layer_types": ["sliding_attention"], "sliding_window": 3}

PEERS: dict[str, Peer] = {
    "llama 3.1": Peer(
        **_rotated(
            LlamaConfig(**_sizes, **_rope("llama3", **LLAMA3, original_max_position_embeddings=64)),
            modeling_llama,
            "Llama",
        ),
        config=AttentionConfig(
            **_ours,
            **_plain,
            score=CAUSAL,
            rotary=RotaryConfig(theta=100.0, scaling=Llama3Scaling(**LLAMA3, max_seq_len=64)),
        ),
    ),
    "qwen3": Peer(
        **_rotated(Qwen3Config(**_sizes, **_rope()), modeling_qwen3, "Qwen3"),
        config=AttentionConfig(
            **_ours, **_plain, score=CAUSAL, rotary=_rotary, qk_norm=QKNormConfig()
        ),
    ),
    "olmo2": Peer(
        **_rotated(Olmo2Config(**_sizes, rms_norm_eps=1e-3, **_rope()), modeling_olmo2, "Olmo2"),
        config=AttentionConfig(
            **_ours,
            **_plain,
            score=CAUSAL,
            rotary=_rotary,
            qk_norm=QKNormConfig(norm=NormConfig(kind="rms", eps=1e-3), over="width"),
        ),
    ),
    "gpt_oss": Peer(
        **_rotated(
            GptOssConfig(
                **_sizes,
                **_types,
                attention_bias=True,
                **_rope("yarn", factor=32.0, original_max_position_embeddings=64, truncate=False),
            ),
            modeling_gpt_oss,
            "GptOss",
        ),
        names={"o_proj": "out_proj", "sinks": "sinks_param"},
        config=AttentionConfig(
            **_ours,
            score=ScoreConfig(is_causal=True, window=3, sinks=True),
            rotary=RotaryConfig(
                theta=100.0, scaling=YarnScaling(factor=32.0, max_seq_len=64, truncate=False)
            ),
        ),
    ),
    "gemma2": Peer(
        **_rotated(
            Gemma2Config(
                **_sizes,
                **_types,
                query_pre_attn_scalar=7,
                attn_logit_softcapping=1.5,
                **_rope(),
            ),
            modeling_gemma2,
            "Gemma2",
        ),
        config=AttentionConfig(
            **_ours,
            **_plain,
            score=ScoreConfig(is_causal=True, window=3, softcap=1.5, scale=7**-0.5),
            rotary=_rotary,
        ),
    ),
    "cohere": Peer(
        **_rotated(CohereConfig(**_sizes, use_qk_norm=False, **_rope()), modeling_cohere, "Cohere"),
        config=AttentionConfig(
            **_ours, **_plain, score=CAUSAL, rotary=RotaryConfig(theta=100.0, interleaved=True)
        ),
    ),
    "gpt_neox": Peer(
        **_rotated(
            GPTNeoXConfig(
                hidden_size=FUSED,
                num_attention_heads=N,
                **_rope(partial_rotary_factor=0.5),
            ),
            modeling_gpt_neox,
            "GPTNeoX",
        ),
        names=_dense,
        split=_thirds_of_heads,
        config=AttentionConfig(
            **_whole, score=CAUSAL, rotary=RotaryConfig(theta=100.0, dim=H // 2)
        ),
    ),
    "deepseek_v3": Peer(
        **_deepseek(None, bias=False),
        config=LatentAttentionConfig(
            **_latent, score=CAUSAL, rotary=RotaryConfig(theta=100.0, interleaved=True)
        ),
    ),
    "deepseek_v3, latent queries, yarn": Peer(
        **_deepseek(10, bias=True, kind="yarn", **_yarn, original_max_position_embeddings=64),
        config=LatentAttentionConfig(
            **_latent,
            q_rank=10,
            qkv_bias=True,
            out_bias=True,
            score=ScoreConfig(is_causal=True, scale=float(_yarn_scale)),
            rotary=RotaryConfig(
                theta=100.0, interleaved=True, scaling=YarnScaling(**_yarn, max_seq_len=64)
            ),
        ),
    ),
    "t5 encoder": _t5(decoder=False),
    "t5 decoder": _t5(decoder=True),
    "bloom": _bloom(),
    "falcon": _falcon(),
    "whisper": _whisper(memory=False),
    "whisper, cross": _whisper(memory=True),
}


@pytest.mark.parametrize("name", PEERS)
def test_as_in_transformers(name):
    peer = PEERS[name]
    module = _random_module(peer)
    given = {"query": np.random.default_rng(4).normal(size=(B, T, peer.config.d_model))}
    visible = np.ones((B, 1, T, S), bool)
    if not peer.memory:
        visible = KEY_MASK[:, None, None] & _seen_by_position(peer.config.score)
    floor = torch.finfo(torch.float64).min
    with float64_throughout(), torch.no_grad():
        mask = torch.where(torch.from_numpy(visible), 0.0, floor)
        theirs = peer.call(module, torch.from_numpy(given["query"]), mask)
    output, weights = theirs[0], theirs[-1]
    assert output.dtype == weights.dtype == torch.float64
    tensors = _canonical(peer, module)
    options = {"key": MEMORY} if peer.memory else {"key_mask": KEY_MASK}
    for panel, build in ((TORCH, torch_module), (JAX, jax_module)):
        ours = panel.run(build(peer.config, tensors), given["query"], **options)
        for part, a, b in zip(("output", "weights"), ours, (output, weights), strict=True):
            comparison = compare_exact(a, from_torch(b), name=f"{panel.name}: {part}")
            assert comparison.ok, str(comparison)


def _seen_by_position(score: ScoreConfig) -> np.ndarray:
    distances = np.arange(T)[:, None] - np.arange(T)
    seen = distances >= 0 if score.is_causal else np.ones((T, T), bool)
    return seen if score.window is None else seen & (distances < score.window)


def _random_module(peer: Peer) -> torch.nn.Module:
    """Build a peer in evaluation mode: no bias is 0, no norm scale is 1."""
    generator = torch.Generator().manual_seed(6)
    with float64_throughout():
        module = peer.build().eval()
    for name, parameter in module.named_parameters():
        drawn = 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = drawn + 1.0 if "norm" in name else drawn
    return module


def _canonical(peer: Peer, module: torch.nn.Module) -> Arrays:
    tensors: Arrays = {}
    for name, parameter in module.named_parameters():
        for leaf, array in peer.split(name, from_torch(parameter)).items():
            owner, _, kind = leaf.partition(".")
            owner = peer.names.get(owner, owner)
            tensors[f"{owner}.{kind}" if kind else owner] = np.ascontiguousarray(array)
    return tensors
