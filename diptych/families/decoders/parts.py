"""What the decoders that follow Llama have in common: names, settings and how they are read."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..rope import ROPE_SETTINGS, read_rotary, write_rotary
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import FULL, SLIDING, StackKind, expect, write_ends

_LAYER = "layers.{i}"
ATTENTION = {
    f"{_LAYER}.self_attn.q_proj": f"{_LAYER}.attention.q_proj",
    f"{_LAYER}.self_attn.k_proj": f"{_LAYER}.attention.k_proj",
    f"{_LAYER}.self_attn.v_proj": f"{_LAYER}.attention.v_proj",
    f"{_LAYER}.self_attn.o_proj": f"{_LAYER}.attention.out_proj",
}
QK_NORMS = {
    f"{_LAYER}.self_attn.q_norm": f"{_LAYER}.attention.q_norm",
    f"{_LAYER}.self_attn.k_norm": f"{_LAYER}.attention.k_norm",
}
NORMS = {
    f"{_LAYER}.input_layernorm": f"{_LAYER}.attention_norm",
    f"{_LAYER}.post_attention_layernorm": f"{_LAYER}.feed_forward_norm",
}
FEED_FORWARD = {
    f"{_LAYER}.mlp.gate_proj": f"{_LAYER}.feed_forward.gate_proj",
    f"{_LAYER}.mlp.up_proj": f"{_LAYER}.feed_forward.up_proj",
    f"{_LAYER}.mlp.down_proj": f"{_LAYER}.feed_forward.down_proj",
}
ENDS = {"embed_tokens": "embedding.token_embed", "norm": "final_norm"}
MODULES = ENDS | ATTENTION | NORMS | FEED_FORWARD
SIZES = {
    "vocab_size": ("embed_tokens.weight", 0),
    "hidden_size": ("embed_tokens.weight", 1),
    "intermediate_size": ("layers.0.mlp.gate_proj.weight", 0),
}
BUFFERS = {f"{_LAYER}.self_attn.rotary_emb.inv_freq": None, "rotary_emb.inv_freq": None}
UNDERSTOOD = {
    **hf.ARCHITECTURES,
    **ROPE_SETTINGS,
    "attention_bias": Setting(bool, False),
    "attention_dropout": Setting(NUMBER, 0.0),
    "head_dim": SIZE,
    "hidden_act": Setting(str, "silu"),
    "hidden_size": SIZE,
    "intermediate_size": SIZE,
    "num_attention_heads": SIZE,
    "num_hidden_layers": SIZE,
    "num_key_value_heads": SIZE,
    "rms_norm_eps": Setting(NUMBER, 1e-6),
    "tie_word_embeddings": Setting(bool, False),
    "vocab_size": SIZE,
}
WINDOWS = {
    "layer_types": Setting(list),
    "sliding_window": Setting(int),
}
STACK_KIND = StackKind(rotary=spec.RotaryConfig, feed_forward=spec.GatedFeedForwardConfig)


def read_attention(values: Mapping[str, Any], **options: Any) -> spec.AttentionConfig:
    """Return the attention that the settings describe; options replace what they say."""
    d_model, num_heads = require(values, "hidden_size"), require(values, "num_attention_heads")
    bias = values.get("attention_bias") or False
    options = {
        "num_kv_heads": values["num_key_value_heads"] or num_heads,
        "head_dim": head_dim(values),
        "qkv_bias": bias,
        "out_bias": bias,
        "attention_dropout": values["attention_dropout"],
        "score": spec.ScoreConfig(is_causal=True),
    } | options
    if "rotary" not in options:
        options["rotary"] = read_rotary(values, options["head_dim"])
    return spec.AttentionConfig(d_model=d_model, num_heads=num_heads, **options)


def read_feed_forward(
    values: Mapping[str, Any], *, activation: str = "hidden_act", bias: bool = False
) -> spec.GatedFeedForwardConfig:
    """Return the gated network that the settings describe; ``activation`` is its setting."""
    return spec.GatedFeedForwardConfig(
        d_model=values["hidden_size"],
        d_ff=require(values, "intermediate_size"),
        activation=hf.read_activation(values, activation),
        bias=bias,
    )


def read_norm(values: Mapping[str, Any], **options: Any) -> spec.NormConfig:
    """Return the RMS norm that the settings describe."""
    return spec.NormConfig(kind="rms", eps=values["rms_norm_eps"], **options)


def write_decoder(
    config: spec.DecoderConfig, *, activation: str | None = "hidden_act"
) -> dict[str, Any]:
    """Return the settings that ``read_attention`` and the others read.

    Args:
        config: Of the decoder.
        activation: The setting of the activation, if there is one.
    """
    layer = config.layers[0]
    attention, feed_forward = expect(layer.attention, spec.AttentionConfig), layer.feed_forward
    num_heads, num_kv_heads, width = attention.sizes
    named = {activation: hf.write_activation(feed_forward.activation)} if activation else {}
    return {
        **named,
        "attention_dropout": attention.attention_dropout,
        "head_dim": width,
        "hidden_size": config.d_model,
        "intermediate_size": feed_forward.d_ff,
        "num_attention_heads": num_heads,
        "num_hidden_layers": config.num_layers,
        "num_key_value_heads": num_kv_heads,
        "rms_norm_eps": layer.norm.of(1).eps,
        **write_ends(config),
        **write_rotary(expect(attention.rotary, spec.RotaryConfig), width),
    }


def head_dim(values: Mapping[str, Any]) -> int:
    """Return the width of a head."""
    given = values.get("head_dim")
    return given or require(values, "hidden_size") // require(values, "num_attention_heads")


def read_windows(values: Mapping[str, Any], types: Sequence[str]) -> list[int | None]:
    """Return every layer's window.

    Args:
        values: Settings of ``WINDOWS``.
        types: Every layer's type where no setting gives them.

    Raises:
        ValueError: If there is not one known type a layer.
    """
    types = values["layer_types"] or types
    if len(types) != values["num_hidden_layers"] or set(types) - {FULL, SLIDING}:
        raise ValueError(
            f"layer_types: {types} must be {values['num_hidden_layers']} of {FULL} and {SLIDING}"
        )
    return [require(values, "sliding_window") if each == SLIDING else None for each in types]


def write_windows(config: spec.DecoderConfig) -> dict[str, Any]:
    """Return the settings of every layer's window."""
    windows = [layer.attention.score.window for layer in config.layers]
    widths = [window for window in windows if window is not None]
    return {
        "layer_types": [FULL if window is None else SLIDING for window in windows],
        "sliding_window": widths[0] if widths else None,
    }


def with_window(layer: spec.BlockConfig, window: int | None) -> spec.BlockConfig:
    """Return a layer whose attention sees a window."""
    score = replace(layer.attention.score, window=window)
    return replace(layer, attention=replace(layer.attention, score=score))
