"""Rotary positions beside the models of ``transformers``, their float32 casts lifted."""

import sys
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    CohereConfig,
    DeepseekV3Config,
    GPTJConfig,
    GPTNeoXConfig,
    GptOssConfig,
    LlamaConfig,
    Phi3Config,
    PhiConfig,
)
from transformers.models.cohere import modeling_cohere
from transformers.models.deepseek_v3 import modeling_deepseek_v3
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.gpt_oss import modeling_gpt_oss
from transformers.models.gptj import modeling_gptj
from transformers.models.llama import modeling_llama
from transformers.models.phi import modeling_phi
from transformers.models.phi3 import modeling_phi3

from diptych.spec import DynamicScaling, Llama3Scaling, LongRopeScaling, RotaryConfig, YarnScaling
from parity_tests.functional.rotary_cases import POSITIONS, H, T, X, rotate
from parity_tests.support.lift_float32 import float64_throughout
from parity_tests.support.panels import Panel, both_panels, to_numpy

SHORT, LONG = tuple(1.0 + 0.1 * i for i in range(8)), tuple(2.0 + i for i in range(8))
SIZES = {"hidden_size": 2 * H, "num_attention_heads": 2, "num_key_value_heads": 2}


def _rope(kind: str, **settings: Any) -> dict[str, Any]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 1e4, **settings}}


LLAMA3 = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
FAMILIES: dict[str, tuple[Any, Any, RotaryConfig]] = {
    "llama": (
        modeling_llama.LlamaRotaryEmbedding,
        LlamaConfig(**SIZES, head_dim=H, **_rope("default")),
        RotaryConfig(),
    ),
    "llama 3.1": (
        modeling_llama.LlamaRotaryEmbedding,
        LlamaConfig(
            **SIZES, head_dim=H, **_rope("llama3", **LLAMA3, original_max_position_embeddings=64)
        ),
        RotaryConfig(scaling=Llama3Scaling(**LLAMA3, max_seq_len=64)),
    ),
    "llama, dynamic": (
        modeling_llama.LlamaRotaryEmbedding,
        LlamaConfig(**SIZES, head_dim=H, max_position_embeddings=4, **_rope("dynamic", factor=2.0)),
        RotaryConfig(scaling=DynamicScaling(factor=2.0, max_seq_len=4)),
    ),
    "cohere": (
        modeling_cohere.CohereRotaryEmbedding,
        CohereConfig(**SIZES, **_rope("default")),
        RotaryConfig(interleaved=True),
    ),
    "gpt_neox": (
        modeling_gpt_neox.GPTNeoXRotaryEmbedding,
        GPTNeoXConfig(
            hidden_size=2 * H,
            num_attention_heads=2,
            **_rope("default", partial_rotary_factor=0.25),
        ),
        RotaryConfig(dim=4),
    ),
    "phi": (
        modeling_phi.PhiRotaryEmbedding,
        PhiConfig(**SIZES, **_rope("default", partial_rotary_factor=0.5)),
        RotaryConfig(dim=8),
    ),
    "phi3, long": (
        modeling_phi3.Phi3RotaryEmbedding,
        Phi3Config(
            **SIZES,
            max_position_embeddings=64,
            original_max_position_embeddings=4,
            **_rope("longrope", short_factor=list(SHORT), long_factor=list(LONG)),
            pad_token_id=0,
        ),
        RotaryConfig(
            scaling=LongRopeScaling(
                short_factor=SHORT, long_factor=LONG, max_seq_len=4, factor=16.0
            )
        ),
    ),
    "deepseek_v3": (
        modeling_deepseek_v3.DeepseekV3RotaryEmbedding,
        DeepseekV3Config(
            **SIZES,
            qk_rope_head_dim=H,
            max_position_embeddings=256,
            **_rope(
                "yarn",
                factor=40.0,
                mscale=1.0,
                mscale_all_dim=0.7,
                original_max_position_embeddings=64,
            ),
        ),
        RotaryConfig(
            interleaved=True,
            scaling=YarnScaling(factor=40.0, max_seq_len=64, mscale=1.0, mscale_all_dim=0.7),
        ),
    ),
    "gpt_oss": (
        modeling_gpt_oss.GptOssRotaryEmbedding,
        GptOssConfig(
            **SIZES,
            head_dim=H,
            **_rope("yarn", factor=32.0, original_max_position_embeddings=64, truncate=False),
        ),
        RotaryConfig(scaling=YarnScaling(factor=32.0, max_seq_len=64, truncate=False)),
    ),
}


@both_panels
@pytest.mark.parametrize("family", FAMILIES)
def test_as_the_models_of_transformers(panel: Panel, family: str) -> None:
    """In float64, their float32 casts lifted; positions 0 .. T - 1, beyond some trained lengths."""
    kind, config, rotary = FAMILIES[family]
    module = sys.modules[kind.__module__]
    name = "apply_rotary_pos_emb" + ("_interleave" if family == "deepseek_v3" else "")
    width = rotary.dim or H
    with float64_throughout():
        x = torch.from_numpy(X)
        cos, sin = kind(config)(x, torch.arange(T)[None])
        theirs, _ = getattr(module, name)(x[..., :width], x[..., :width], cos, sin)
    assert theirs.dtype == torch.float64
    ours = rotate(panel, X, POSITIONS, rotary)
    if family == "deepseek_v3":  # it returns its pairs as halves
        ours = ours[..., np.arange(H).reshape(H // 2, 2).T.reshape(H)]
    np.testing.assert_allclose(ours[..., :width], to_numpy(theirs), rtol=0, atol=2e-14)
    np.testing.assert_array_equal(ours[..., width:], X[..., width:])


@both_panels
def test_as_gptj(panel: Panel) -> None:
    """Neighbours form a pair, of the leading channels alone; its heads stand after time."""
    config = GPTJConfig(n_embd=2 * H, n_head=2, rotary_dim=6, n_positions=T)
    with float64_throughout():
        table = modeling_gptj.create_sinusoidal_positions(T, config.rotary_dim)
        sin, cos = torch.split(table[None], config.rotary_dim // 2, dim=-1)
        x = torch.from_numpy(X).transpose(1, 2)[..., : config.rotary_dim]
        theirs = modeling_gptj.apply_rotary_pos_emb(x, sin, cos).transpose(1, 2)
    assert theirs.dtype == torch.float64
    ours = rotate(panel, X, POSITIONS, RotaryConfig(dim=6, interleaved=True))
    np.testing.assert_allclose(ours[..., :6], to_numpy(theirs), rtol=0, atol=2e-14)
