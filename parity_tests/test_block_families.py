"""Blocks against the layers that model families have, by copying their weights; float64."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from transformers.models.cohere import modeling_cohere
from transformers.models.gemma2 import modeling_gemma2
from transformers.models.gpt_neox import modeling_gpt_neox
from transformers.models.olmo2 import modeling_olmo2

from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    FeedForwardConfig,
    GatedFeedForwardConfig,
    NormConfig,
    QKNormConfig,
    RotaryConfig,
    ScoreConfig,
    TransformerDecoderLayerConfig,
)
from parity_tests.component_runs import jax_module, torch_module
from parity_tests.panels import JAX, TORCH

B, T, S, D, N, K, H, F = 2, 5, 4, 12, 3, 1, 6, 14
X = np.random.default_rng(0).normal(size=(B, T, D))
MEMORY = np.random.default_rng(1).normal(size=(B, S, D))
SIZES = {
    "hidden_size": D, "num_attention_heads": N, "intermediate_size": F,
    "max_position_embeddings": 32, "_attn_implementation": "eager",
}  # fmt: skip
GROUPED = SIZES | {"num_key_value_heads": K, "head_dim": H}
ATTENTION: dict[str, Any] = {"d_model": D, "num_heads": N}
SPLIT = {"num_kv_heads": K, "head_dim": H, "qkv_bias": False, "out_bias": False}
NAMES = {
    "self_attn": "attention", "o_proj": "out_proj", "mlp": "feed_forward",
    "post_attention_layernorm": "attention_norm", "post_feedforward_layernorm": "feed_forward_norm",
}  # fmt: skip
CAUSAL = ScoreConfig(is_causal=True)


def olmo2() -> tuple[Any, Any, BlockConfig, dict[str, str]]:
    """Norms of the branches, norms of all queries and keys at once."""
    config = modeling_olmo2.Olmo2Config(**(GROUPED | {"head_dim": D // N}))
    block = BlockConfig(
        attention=AttentionConfig(
            **ATTENTION, **(SPLIT | {"head_dim": None}), score=CAUSAL,
            rotary=RotaryConfig(theta=config.rope_parameters["rope_theta"]),
            qk_norm=QKNormConfig(norm=NormConfig(kind="rms", eps=1e-5), over="width"),
        ),
        feed_forward=GatedFeedForwardConfig(d_model=D, d_ff=F),
        norm=NormConfig(kind="rms", eps=1e-5),
        norm_placement="branch",
    )  # fmt: skip
    layer = modeling_olmo2.Olmo2DecoderLayer(config, 0)
    return layer, modeling_olmo2.Olmo2RotaryEmbedding(config), block, NAMES


def gemma2() -> tuple[Any, Any, BlockConfig, dict[str, str]]:
    """Norms before and after every branch, a cap on the scores."""
    config = modeling_gemma2.Gemma2Config(**GROUPED, query_pre_attn_scalar=9)
    score = ScoreConfig(is_causal=True, softcap=config.attn_logit_softcapping, scale=1 / 3)
    block = BlockConfig(
        attention=AttentionConfig(**ATTENTION, **SPLIT, score=score, rotary=RotaryConfig()),
        feed_forward=GatedFeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh"),
        norm=NormConfig(kind="rms", unit_offset=True),
        norm_placement="sandwich",
    )
    names = NAMES | {
        "input_layernorm": "attention_norm", "post_attention_layernorm": "attention_out_norm",
        "pre_feedforward_layernorm": "feed_forward_norm",
        "post_feedforward_layernorm": "feed_forward_out_norm",
    }  # fmt: skip
    layer = modeling_gemma2.Gemma2DecoderLayer(config, 1)
    return layer, modeling_gemma2.Gemma2RotaryEmbedding(config), block, names


def gpt_neox() -> tuple[Any, Any, BlockConfig, dict[str, str]]:
    """Both branches read the input, each through its norm; a part of a head is rotated."""
    rope = {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}
    config = modeling_gpt_neox.GPTNeoXConfig(**SIZES, rope_parameters=rope)
    block = BlockConfig(
        attention=AttentionConfig(**ATTENTION, score=CAUSAL, rotary=RotaryConfig(dim=2)),
        feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation="gelu"),
        norm_placement="parallel",
    )
    names = {
        "input_layernorm": "attention_norm", "post_attention_layernorm": "feed_forward_norm",
        "attention.dense": "attention.out_proj", "mlp.dense_h_to_4h": "feed_forward.up_proj",
        "mlp.dense_4h_to_h": "feed_forward.down_proj",
    }  # fmt: skip
    layer = modeling_gpt_neox.GPTNeoXLayer(config, 0)
    return layer, modeling_gpt_neox.GPTNeoXRotaryEmbedding(config), block, names


def cohere() -> tuple[Any, Any, BlockConfig, dict[str, str]]:
    """Both branches read the same norm; neighbours are rotated."""
    config = modeling_cohere.CohereConfig(**(GROUPED | {"head_dim": D // N}))
    block = BlockConfig(
        attention=AttentionConfig(
            **ATTENTION, **(SPLIT | {"head_dim": None}), score=CAUSAL,
            rotary=RotaryConfig(
                theta=config.rope_parameters["rope_theta"], interleaved=True
            ),
        ),
        feed_forward=GatedFeedForwardConfig(d_model=D, d_ff=F),
        norm=NormConfig(bias=False),
        norm_placement="parallel_shared",
    )  # fmt: skip
    names = NAMES | {"input_layernorm": "attention_norm"}
    layer = modeling_cohere.CohereDecoderLayer(config, 0)
    return layer, modeling_cohere.CohereRotaryEmbedding(config), block, names


def renamed(layer: Any, names: dict[str, str]) -> dict[str, np.ndarray]:
    """Return a layer's parameters, drawn anew, by our names; queries, keys, values apart."""
    found = {}
    random = np.random.default_rng(3)
    for name, parameter in layer.named_parameters():
        parameter.data = torch.from_numpy(0.5 * random.normal(size=parameter.shape))
        array = parameter.data.numpy()
        for old, new in names.items():
            name = re.sub(rf"(^|\.){re.escape(old)}\.", rf"\g<1>{new}.", name)
        if "query_key_value" not in name:
            found[name] = array
            continue
        parts = np.moveaxis(array.reshape(N, 3, D // N, *array.shape[1:]), 1, 0)
        for letter, part in zip("qkv", parts, strict=True):
            own = name.replace("query_key_value", f"{letter}_proj")
            found[own] = part.reshape(D, *array.shape[1:])
    return found


@pytest.mark.parametrize("family", [olmo2, gemma2, gpt_neox, cohere])
def test_a_block_is_the_layer_of_a_family(family: Any) -> None:
    torch.manual_seed(0)
    layer, rotary, block, names = family()
    tensors = renamed(layer.double().eval(), names)
    x, at = torch.from_numpy(X), torch.arange(T)[None]
    mask = torch.full((T, T), -torch.inf, dtype=torch.float64).triu(1)[None, None]
    cos, sin = rotary(x, at)  # in float32 inside, whatever the dtype
    with torch.no_grad():
        right = layer(x, attention_mask=mask, position_embeddings=(cos, sin), position_ids=at)
    right = (right[0] if isinstance(right, tuple) else right).numpy()
    for panel, make in ((TORCH, torch_module), (JAX, jax_module)):
        output = panel.run(make(block, tensors), X).output
        np.testing.assert_allclose(output, right, rtol=0, atol=2e-6 * np.abs(right).max())


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_the_decoder_layer_is_that_of_torch(placement: str) -> None:
    layer = torch.nn.TransformerDecoderLayer(
        D, N, F, batch_first=True, norm_first=placement == "pre", dtype=torch.float64
    ).eval()
    names = {
        "multihead_attn": "cross_attention", "self_attn": "attention",
        "linear1": "feed_forward.up_proj", "linear2": "feed_forward.down_proj",
        "norm1": "attention_norm", "norm2": "cross_attention_norm", "norm3": "feed_forward_norm",
    }  # fmt: skip
    tensors = {}
    for name, array in renamed(layer, names).items():
        prefix, joined, kind = name.partition("in_proj_")
        if not joined:
            tensors[name] = array
            continue
        for letter, part in zip("qkv", np.split(array, 3), strict=True):
            tensors[f"{prefix}{letter}_proj.{kind}"] = part
    mask = torch.nn.Transformer.generate_square_subsequent_mask(T, dtype=torch.float64)
    with torch.no_grad():
        right = layer(torch.from_numpy(X), torch.from_numpy(MEMORY), mask).numpy()
    config = TransformerDecoderLayerConfig(d_model=D, num_heads=N, d_ff=F, norm_placement=placement)
    for panel, make in ((TORCH, torch_module), (JAX, jax_module)):
        output = panel.run(make(config, tensors), X, MEMORY)
        np.testing.assert_allclose(output, right, rtol=0, atol=1e-12 * np.abs(right).max())
