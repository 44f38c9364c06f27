"""GPT-NeoX, Pythia (Black et al. 2022) as ``transformers`` stores it: q, k, v in turns by head."""

from collections.abc import Mapping
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

_LAYER = "layers.{i}"
_QKV = f"{_LAYER}.attention.query_key_value"
_MODULES: Modules = {
    "embed_in": "embedding.token_embed",
    f"{_LAYER}.input_layernorm": f"{_LAYER}.attention_norm",
    _QKV: tuple(f"{_LAYER}.attention.{x}_proj" for x in "qkv"),
    f"{_LAYER}.attention.dense": f"{_LAYER}.attention.out_proj",
    f"{_LAYER}.post_attention_layernorm": f"{_LAYER}.feed_forward_norm",
    f"{_LAYER}.mlp.dense_h_to_4h": f"{_LAYER}.feed_forward.up_proj",
    f"{_LAYER}.mlp.dense_4h_to_h": f"{_LAYER}.feed_forward.down_proj",
    "final_layer_norm": "final_norm",
}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    d_model, num_heads = require(values, "hidden_size"), require(values, "num_attention_heads")
    norm, bias = spec.NormConfig(eps=values["layer_norm_eps"]), values["attention_bias"]
    partial = 0.25 if values["rotary_pct"] is None else values["rotary_pct"]
    # Old files call the base rotary_emb_base.
    theta = values["rotary_emb_base"] or 10000.0
    layer = spec.BlockConfig(
        attention=spec.AttentionConfig(
            d_model=d_model,
            num_heads=num_heads,
            qkv_bias=bias,
            out_bias=bias,
            attention_dropout=values["attention_dropout"],
            score=spec.ScoreConfig(is_causal=True),
            rotary=read_rotary(values, d_model // num_heads, theta=theta, partial=partial),
        ),
        feed_forward=spec.FeedForwardConfig(
            d_model=d_model,
            d_ff=require(values, "intermediate_size"),
            activation=hf.read_activation(values, "hidden_act"),
        ),
        norm=norm,
        norm_placement="parallel" if values["use_parallel_residual"] else "pre",
        dropout=values["hidden_dropout"],
    )
    return read_decoder(values, layer, norm=norm, embed_dropout=values["hidden_dropout"])


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    attention = expect(layer.attention, spec.AttentionConfig)
    rotation, width = expect(attention.rotary, spec.RotaryConfig), attention.sizes[2]
    rotary = write_rotary(rotation, width)
    dim = rotation.dim or width
    return {
        "attention_bias": attention.out_bias,
        "attention_dropout": attention.attention_dropout,
        "hidden_act": hf.write_activation(layer.feed_forward.activation),
        "hidden_dropout": layer.dropout,
        "hidden_size": config.d_model,
        "intermediate_size": layer.feed_forward.d_ff,
        "layer_norm_eps": layer.norm.of(1).eps,
        "num_attention_heads": attention.num_heads,
        "num_hidden_layers": config.num_layers,
        "rotary_emb_base": rotary["rope_theta"],
        "rotary_pct": dim / width,
        "use_parallel_residual": layer.is_parallel,
        **write_ends(config),
        **rotary,
        # Without it transformers takes a quarter.
        "partial_rotary_factor": dim / width,
    } | {"rope_parameters": rotary["rope_parameters"] | {"partial_rotary_factor": dim / width}}


def _transforms(config: spec.DecoderConfig) -> Mapping[str, Transform]:
    attention = expect(config.layers[0].attention, spec.AttentionConfig)
    return both_parts(_QKV, groups(attention))


GPT_NEOX = DecoderFamily(
    name="gpt_neox",
    summary="GPT-NeoX, Pythia (GPTNeoXForCausalLM, GPTNeoXModel)",
    model_types=("gpt_neox",),
    architectures=("GPTNeoXForCausalLM", "GPTNeoXModel"),
    modules=_MODULES,
    settings=hf.settings_table(
        {
            **ROPE_SETTINGS,
            "attention_bias": Setting(bool, True),
            "attention_dropout": Setting(NUMBER, 0.0),
            "hidden_act": Setting(str, "gelu"),
            "hidden_dropout": Setting(NUMBER, 0.0),
            "hidden_size": SIZE,
            "intermediate_size": SIZE,
            "layer_norm_eps": Setting(NUMBER, 1e-5),
            "num_attention_heads": SIZE,
            "num_hidden_layers": SIZE,
            "rotary_emb_base": Setting(NUMBER),
            "rotary_pct": Setting(NUMBER),
            "tie_word_embeddings": Setting(bool, False),
            "use_parallel_residual": Setting(bool, True),
            "vocab_size": SIZE,
        },
        bookkeeping={"classifier_dropout"},
    ),
    sizes={
        "vocab_size": ("embed_in.weight", 0),
        "hidden_size": ("embed_in.weight", 1),
        "intermediate_size": ("layers.0.mlp.dense_h_to_4h.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(rotary=spec.RotaryConfig, feed_forward=spec.FeedForwardConfig),
    transforms=_transforms,
    prefix="gpt_neox.",
    head="embed_out",
    buffers={
        "layers.{i}.attention.bias": "lower_triangle",
        "layers.{i}.attention.masked_bias": None,
        "layers.{i}.attention.rotary_emb.inv_freq": None,
    },
)
