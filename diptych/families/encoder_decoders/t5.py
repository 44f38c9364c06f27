"""T5 (Raffel et al. 2020), 1.0, 1.1 and Flan, as ``transformers`` stores it."""

from dataclasses import replace
from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..modules import Modules
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect, token_embedding
from .family import EncoderDecoderFamily, Size

_LAYERS = {  # theirs by the number of their layers of a block: the feed-forward network is the last
    "encoder": (("SelfAttention", "attention"),),
    "decoder": (("SelfAttention", "attention"), ("EncDecAttention", "cross_attention")),
}
_GATED = {"wi_0": "gate_proj", "wi_1": "up_proj", "wo": "down_proj"}
_PLAIN = {"wi": "up_proj", "wo": "down_proj"}
_BIAS = "block.0.layer.0.SelfAttention.relative_attention_bias"


def _modules(feed_forward: dict[str, str]) -> Modules:
    modules = {}
    for stack, attentions in _LAYERS.items():
        block, layer = f"{stack}.block.{{i}}.layer", f"{stack}.layers.{{i}}"
        for place, (theirs, ours) in enumerate(attentions):
            for name, proj in zip("qkvo", ("q_proj", "k_proj", "v_proj", "out_proj"), strict=True):
                modules[f"{block}.{place}.{theirs}.{name}"] = f"{layer}.{ours}.{proj}"
            modules[f"{block}.{place}.layer_norm"] = f"{layer}.{ours}_norm"
        last = len(attentions)
        for name, proj in feed_forward.items():
            modules[f"{block}.{last}.DenseReluDense.{name}"] = f"{layer}.feed_forward.{proj}"
        modules[f"{block}.{last}.layer_norm"] = f"{layer}.feed_forward_norm"
        modules[f"{stack}.{_BIAS}"] = f"{stack}.position_bias.bias_embed"
        modules[f"{stack}.final_layer_norm"] = f"{stack}.final_norm"
    return modules


def _select(config: spec.Config) -> Modules:
    stack = config.encoder if isinstance(config, spec.EncoderDecoderConfig) else config
    feed_forward = expect(stack, spec.EncoderConfig).layers[0].feed_forward
    is_gated = isinstance(feed_forward, spec.GatedFeedForwardConfig)
    return _modules(_GATED if is_gated else _PLAIN)


def _read(values: dict[str, Any]) -> spec.EncoderDecoderConfig:
    d_model, dropout = require(values, "d_model"), values["dropout_rate"]
    norm = spec.NormConfig(kind="rms", eps=values["layer_norm_epsilon"])
    attention = spec.AttentionConfig(
        d_model=d_model,
        num_heads=require(values, "num_heads"),
        head_dim=require(values, "d_kv"),
        qkv_bias=False,
        out_bias=False,
        attention_dropout=dropout,
        score=spec.ScoreConfig(scale=1.0),
    )
    layer = spec.BlockConfig(
        attention=attention,
        feed_forward=_read_feed_forward(values),
        norm=norm,
        dropout=dropout,
    )
    causal = replace(
        layer,
        attention=replace(attention, score=spec.ScoreConfig(is_causal=True, scale=1.0)),
        cross_attention=attention,
    )
    bias = spec.RelativeBiasConfig(
        num_buckets=values["relative_attention_num_buckets"] or 32,
        max_distance=values["relative_attention_max_distance"],
    )
    embedding = token_embedding(require(values, "vocab_size"), d_model, dropout=dropout)
    num_layers = require(values, "num_layers")
    ends: dict[str, Any] = {"final_norm": norm, "dropout": dropout}
    return spec.EncoderDecoderConfig(
        encoder=spec.EncoderConfig(
            layer=layer, num_layers=num_layers, embedding=embedding, position_bias=bias, **ends
        ),
        decoder=spec.DecoderConfig(
            layer=causal,
            num_layers=values["num_decoder_layers"] or num_layers,
            embedding=replace(embedding, shared_tokens=True),
            position_bias=replace(bias, is_bidirectional=False),
            **ends,
        ),
    )


def _read_feed_forward(
    values: dict[str, Any],
) -> spec.FeedForwardConfig | spec.GatedFeedForwardConfig:
    *gate, name = values["feed_forward_proj"].split("-")
    if gate not in ([], ["gated"]):
        raise ValueError(
            f"feed_forward_proj: {values['feed_forward_proj']!r} must be ACTIVATION or "
            "gated-ACTIVATION"
        )
    is_gated, key = values["is_gated_act"], "dense_act_fn"
    if is_gated is None:
        is_gated = bool(gate)
    activation = values[key]
    if activation is None:
        activation, key = ("gelu_new" if gate and name == "gelu" else name), "feed_forward_proj"
    kind = spec.GatedFeedForwardConfig if is_gated else spec.FeedForwardConfig
    return kind(
        d_model=values["d_model"],
        d_ff=require(values, "d_ff"),
        activation=hf.read_activation({key: activation}, key),
        bias=False,
    )


def _read_head(values: dict[str, Any], has_weight: bool, has_bias: bool) -> spec.LogitsHeadConfig:
    """Return the head: tied ones are scaled, and ``transformers`` 5 calls every one tied."""
    is_tied = values["tie_word_embeddings"] is not False
    is_scaled = values["scale_decoder_outputs"]
    if is_scaled is None:
        is_scaled = is_tied
    return spec.LogitsHeadConfig(
        d_model=values["d_model"],
        vocab_size=values["vocab_size"],
        tied=is_tied and (is_scaled or not has_weight),
        scale=values["d_model"] ** -0.5 if is_scaled else 1.0,
    )


def _write(encoder: spec.EncoderConfig, decoder: spec.DecoderConfig | None) -> dict[str, Any]:
    layer, bias = encoder.layers[0], expect(encoder.position_bias, spec.RelativeBiasConfig)
    feed_forward = layer.feed_forward
    is_gated = isinstance(feed_forward, spec.GatedFeedForwardConfig)
    activation = hf.write_activation(feed_forward.activation)
    num_heads, _, width = expect(layer.attention, spec.AttentionConfig).sizes
    name = "gelu" if activation == "gelu_new" else activation
    head = decoder.head if decoder else None
    tied = {}
    if head is not None:
        tied = {"tie_word_embeddings": head.tied, "scale_decoder_outputs": head.scale != 1.0}
    return {
        "d_ff": feed_forward.d_ff,
        "d_kv": width,
        "d_model": encoder.d_model,
        "dense_act_fn": activation,
        "dropout_rate": encoder.dropout,
        "feed_forward_proj": f"gated-{name}" if is_gated else activation,
        "is_gated_act": is_gated,
        "layer_norm_epsilon": layer.norm.of(1).eps,
        "num_decoder_layers": (decoder or encoder).num_layers,
        "num_heads": num_heads,
        "num_layers": encoder.num_layers,
        "relative_attention_max_distance": bias.max_distance,
        "relative_attention_num_buckets": bias.num_buckets,
        "vocab_size": expect(encoder.embedding, spec.TextEmbeddingConfig).vocab_size,
        **tied,
    }


T5 = EncoderDecoderFamily(
    name="t5",
    summary="T5 1.0, 1.1 and Flan (T5ForConditionalGeneration, T5Model, T5EncoderModel)",
    model_types=("t5",),
    architectures=("T5ForConditionalGeneration", "T5Model"),
    encoder_architecture="T5EncoderModel",
    modules={**_modules(_GATED), **_modules(_PLAIN)},
    select=_select,
    tables=("shared", "encoder.embed_tokens", "decoder.embed_tokens"),
    settings=hf.settings_table(
        {
            "d_ff": SIZE,
            "d_kv": SIZE,
            "d_model": SIZE,
            "dense_act_fn": Setting(str),
            "dropout_rate": Setting(NUMBER, 0.1),
            "feed_forward_proj": Setting(str, "relu"),
            "is_gated_act": Setting(bool),
            "layer_norm_epsilon": Setting(NUMBER, 1e-6),
            "num_decoder_layers": SIZE,
            "num_heads": SIZE,
            "num_layers": SIZE,
            "relative_attention_max_distance": Setting(int, 128, above=0),
            "relative_attention_num_buckets": SIZE,
            "scale_decoder_outputs": Setting(bool),
            "tie_word_embeddings": Setting(bool, True),
            "vocab_size": SIZE,
        },
        bookkeeping={"classifier_dropout", "n_positions"},
        fixed={"is_encoder_decoder": (True, False, None)},
    ),
    sizes={
        "num_heads": Size(f"encoder.{_BIAS}.weight", 1),
        "relative_attention_num_buckets": Size(f"encoder.{_BIAS}.weight", 0),
        "d_ff": Size("encoder.block.0.layer.1.DenseReluDense.wo.weight", 1),
    },
    layers={"encoder.block": "num_layers", "decoder.block": "num_decoder_layers"},
    read=_read,
    read_head=_read_head,
    write=_write,
    stack_kind=StackKind(
        feed_forward=spec.FeedForwardConfig | spec.GatedFeedForwardConfig,
        position_bias=spec.RelativeBiasConfig,
    ),
    always=("tie_word_embeddings",),
    prefix="",
    untie="to read both, give --set tie_word_embeddings=false",
    buffers={"decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight": None},
    linen_norm="weight",
)
