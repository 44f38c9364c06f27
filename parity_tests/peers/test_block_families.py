"""Blocks beside the layers of model families in ``transformers``, and that of torch."""

from collections.abc import Callable
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
from parity_tests.components.case import ComponentCase
from parity_tests.support.harness import Arrays
from parity_tests.support.peers import Peer, Tensors, call_recording, judge_peer, thirds

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
Family = tuple[Callable[[], Any], Callable[[], Any], BlockConfig, dict[str, str]]
"""Makes the layer, makes its table of positions; what it is to us, and our names."""


def olmo2() -> Family:
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
    return (
        lambda: modeling_olmo2.Olmo2DecoderLayer(config, 0),
        lambda: modeling_olmo2.Olmo2RotaryEmbedding(config),
        block,
        NAMES,
    )


def gemma2() -> Family:
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
    return (
        lambda: modeling_gemma2.Gemma2DecoderLayer(config, 1),
        lambda: modeling_gemma2.Gemma2RotaryEmbedding(config),
        block,
        names,
    )


def gpt_neox() -> Family:
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
    return (
        lambda: modeling_gpt_neox.GPTNeoXLayer(config, 0),
        lambda: modeling_gpt_neox.GPTNeoXRotaryEmbedding(config),
        block,
        names,
    )


def cohere() -> Family:
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
    return (
        lambda: modeling_cohere.CohereDecoderLayer(config, 0),
        lambda: modeling_cohere.CohereRotaryEmbedding(config),
        block,
        names,
    )


def split(name: str, array: np.ndarray) -> Arrays:
    """Split a fused projection whose every head holds its query, key and value."""
    if "query_key_value" not in name:
        return {name: array}
    parts = np.moveaxis(array.reshape(N, 3, D // N, *array.shape[1:]), 1, 0)
    return {
        name.replace("query_key_value", f"{letter}_proj"): part.reshape(D, *array.shape[1:])
        for letter, part in zip("qkv", parts, strict=True)
    }


@pytest.mark.parametrize("family", [olmo2, gemma2, gpt_neox, cohere])
def test_a_block_is_the_layer_of_a_family(family: Any) -> None:
    build, rotary, block, names = family()

    def call(layer: Any, inputs: Tensors) -> Tensors:
        x, at = inputs["x"], torch.arange(T)[None]
        mask = torch.full((T, T), -torch.inf).triu(1)[None, None]
        attention = "attention" if hasattr(layer, "attention") else "self_attn"
        output, [attended] = call_recording(
            layer,
            [attention],
            x,
            attention_mask=mask,
            position_embeddings=rotary()(x, at),
            position_ids=at,
        )
        return {"[output]": output, "[attention_weights]": attended[1]}

    case = ComponentCase(block, {"x": X}, {"need_weights": True})
    judge_peer(Peer(build, case, call, names, split))


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_the_decoder_layer_is_that_of_torch(placement: str) -> None:
    """It returns no weights."""
    config = TransformerDecoderLayerConfig(d_model=D, num_heads=N, d_ff=F, norm_placement=placement)
    names = {
        "multihead_attn": "cross_attention", "self_attn": "attention",
        "linear1": "feed_forward.up_proj", "linear2": "feed_forward.down_proj",
        "norm1": "attention_norm", "norm2": "cross_attention_norm", "norm3": "feed_forward_norm",
    }  # fmt: skip

    def call(layer: Any, inputs: Tensors) -> Tensors:
        mask = torch.nn.Transformer.generate_square_subsequent_mask(T)
        return {"output": layer(inputs["x"], inputs["memory"], mask)}

    judge_peer(
        Peer(
            lambda: torch.nn.TransformerDecoderLayer(
                D, N, F, batch_first=True, norm_first=placement == "pre"
            ),
            ComponentCase(config, {"x": X, "memory": MEMORY}),
            call,
            names,
            thirds,
        )
    )
