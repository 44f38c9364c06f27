"""Falcon (Almazrouei et al. 2023) as ``transformers`` stores it, in its three fused layouts.

Multi-query: all queries, then one key and one value; grouped (``new_decoder_architecture``): the
queries, the key and the value of every group; multi-head: (q, k, v) of every head.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ... import spec
from ...rules import Transform
from .. import transformers_settings as hf
from ..fused import both_parts, groups
from ..modules import Modules
from ..rope import ROPE_SETTINGS, read_rotary, write_rotary
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect, read_decoder, write_ends
from .family import DecoderFamily

_LAYER, _OURS = "h.{i}", "layers.{i}"
_QKV = f"{_LAYER}.self_attention.query_key_value"
_MODULES: Modules = {
    "word_embeddings": "embedding.token_embed",
    _QKV: tuple(f"{_OURS}.attention.{x}_proj" for x in "qkv"),
    f"{_LAYER}.self_attention.dense": f"{_OURS}.attention.out_proj",
    f"{_LAYER}.mlp.dense_h_to_4h": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.mlp.dense_4h_to_h": f"{_OURS}.feed_forward.down_proj",
    "ln_f": "final_norm",
}
_PARALLEL_NORMS: Modules = {
    f"{_LAYER}.ln_attn": f"{_OURS}.attention_norm",
    f"{_LAYER}.ln_mlp": f"{_OURS}.feed_forward_norm",
}
_NORMS: Modules = {
    f"{_LAYER}.input_layernorm": f"{_OURS}.attention_norm",
    f"{_LAYER}.post_attention_layernorm": f"{_OURS}.feed_forward_norm",
}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    d_model = values["n_embed"] or require(values, "hidden_size")
    values = {**values, "hidden_size": d_model}
    num_heads, bias = require(values, "num_attention_heads"), values["bias"]
    width = d_model // num_heads
    is_new, is_alibi = values["new_decoder_architecture"], values["alibi"]
    num_kv_heads = values["num_kv_heads"] or num_heads
    if not is_new:
        num_kv_heads = 1 if values["multi_query"] else num_heads
    norm = spec.NormConfig(eps=values["layer_norm_epsilon"])
    layer = spec.BlockConfig(
        attention=spec.AttentionConfig(
            d_model=d_model,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            qkv_bias=bias,
            out_bias=bias,
            attention_dropout=values["attention_dropout"],
            score=spec.ScoreConfig(is_causal=True),
            rotary=None if is_alibi else read_rotary(values, width),
        ),
        feed_forward=spec.FeedForwardConfig(
            d_model=d_model,
            d_ff=values["ffn_hidden_size"] or 4 * d_model,
            activation=hf.read_activation(values, "activation"),
            bias=bias,
        ),
        norm=norm,
        norm_placement=_placement(values),
        dropout=values["hidden_dropout"],
    )
    # Falcon scales the sum of products and penalties.
    alibi = spec.AlibiConfig(scale=width**-0.5) if is_alibi else None
    return replace(read_decoder(values, layer, norm=norm), position_bias=alibi)


def _placement(values: Mapping[str, Any]) -> str:
    if values["new_decoder_architecture"]:
        if not values["parallel_attn"]:
            raise ValueError("parallel_attn: false is not supported with new_decoder_architecture")
        norms = values["num_ln_in_parallel_attn"] or 2
        return "parallel" if norms == 2 else "parallel_shared"
    if values["num_ln_in_parallel_attn"] == 2:
        raise ValueError("num_ln_in_parallel_attn: 2 needs new_decoder_architecture")
    return "parallel_shared" if values["parallel_attn"] else "pre"


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    attention = expect(layer.attention, spec.AttentionConfig)
    num_heads, num_kv_heads, width = attention.sizes
    is_grouped = layer.norm_placement == "parallel" or 1 < num_kv_heads < num_heads
    return {
        "activation": hf.write_activation(layer.feed_forward.activation),
        "alibi": config.position_bias is not None,
        "attention_dropout": attention.attention_dropout,
        "bias": attention.out_bias,
        "ffn_hidden_size": layer.feed_forward.d_ff,
        "hidden_dropout": layer.dropout,
        "hidden_size": config.d_model,
        "layer_norm_epsilon": layer.norm.of(1).eps,
        "multi_query": not is_grouped and num_kv_heads == 1,
        "new_decoder_architecture": is_grouped,
        "num_attention_heads": num_heads,
        "num_hidden_layers": config.num_layers,
        "num_kv_heads": num_kv_heads,
        "num_ln_in_parallel_attn": (2 if layer.norm_placement == "parallel" else 1)
        if is_grouped
        else None,
        "parallel_attn": layer.is_parallel,
        **write_ends(config),
        **({} if attention.rotary is None else write_rotary(attention.rotary, width)),
    }


def _select(config: spec.DecoderConfig) -> Modules:
    norms = _PARALLEL_NORMS if config.layers[0].norm_placement == "parallel" else _NORMS
    return {**_MODULES, **norms}


def _transforms(config: spec.DecoderConfig) -> Mapping[str, Transform]:
    attention = expect(config.layers[0].attention, spec.AttentionConfig)
    return both_parts(_QKV, groups(attention))


FALCON = DecoderFamily(
    name="falcon",
    summary="Falcon (FalconForCausalLM, FalconModel), multi-query, grouped and multi-head",
    model_types=("falcon",),
    architectures=("FalconForCausalLM", "FalconModel"),
    modules={**_MODULES, **_PARALLEL_NORMS, **_NORMS},
    select=_select,
    settings=hf.settings_table(
        {
            **ROPE_SETTINGS,
            "activation": Setting(str, "gelu"),
            "alibi": Setting(bool, False),
            "attention_dropout": Setting(NUMBER, 0.0),
            "bias": Setting(bool, False),
            "ffn_hidden_size": SIZE,
            "hidden_dropout": Setting(NUMBER, 0.0),
            "hidden_size": SIZE,
            "layer_norm_epsilon": Setting(NUMBER, 1e-5),
            "multi_query": Setting(bool, True),
            "n_embed": SIZE,
            "new_decoder_architecture": Setting(bool, False),
            "num_attention_heads": SIZE,
            "num_hidden_layers": SIZE,
            "num_kv_heads": SIZE,
            "num_ln_in_parallel_attn": Setting(int),
            "parallel_attn": Setting(bool, True),
            "tie_word_embeddings": Setting(bool, True),
            "vocab_size": SIZE,
        },
        bookkeeping={"apply_residual_connection_post_layernorm", "auto_map"},
    ),
    sizes={
        "vocab_size": ("word_embeddings.weight", 0),
        "hidden_size": ("word_embeddings.weight", 1),
        "n_embed": ("word_embeddings.weight", 1),
        "ffn_hidden_size": ("h.0.mlp.dense_h_to_4h.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig),
    transforms=_transforms,
    prefix="transformer.",
    layers=("h", "num_hidden_layers"),
    buffers={"h.{i}.self_attention.rotary_emb.inv_freq": None},
)
