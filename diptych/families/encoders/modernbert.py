"""ModernBERT (Warner et al. 2024) as ``transformers`` stores it: q, k, v in one, gates first."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ... import spec
from ...rules import Split, Transform
from ...spec.task_heads import HeadConfig
from .. import transformers_settings as hf
from ..fused import both_parts
from ..modules import Modules
from ..rope import ROPE_SETTINGS, read_rotary, rotary_object
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import FULL, SLIDING, StackKind, expect, shortest_cycle, token_embedding
from .family import EncoderFamily, Head, TiedCopy

_LAYER = "layers.{i}"
_QKV, _GATE_UP = f"{_LAYER}.attn.Wqkv", f"{_LAYER}.mlp.Wi"
_MODULES: Modules = {
    "embeddings.tok_embeddings": "embedding.token_embed",
    "embeddings.norm": "embedding.embed_norm",
    f"{_LAYER}.attn_norm": f"{_LAYER}.attention_norm",
    _QKV: tuple(f"{_LAYER}.attention.{x}_proj" for x in "qkv"),
    f"{_LAYER}.attn.Wo": f"{_LAYER}.attention.out_proj",
    f"{_LAYER}.mlp_norm": f"{_LAYER}.feed_forward_norm",
    _GATE_UP: (f"{_LAYER}.feed_forward.gate_proj", f"{_LAYER}.feed_forward.up_proj"),
    f"{_LAYER}.mlp.Wo": f"{_LAYER}.feed_forward.down_proj",
    "final_norm": "final_norm",
}
_HEAD = {
    "head.dense": "transform_proj",
    "head.norm": "transform_norm",
    "decoder.bias": "vocab_bias_param",
}
_THETAS = {FULL: ("global_rope_theta", 160000.0), SLIDING: ("local_rope_theta", 10000.0)}


def _read(values: dict[str, Any]) -> spec.EncoderConfig:
    d_model, num_heads = require(values, "hidden_size"), require(values, "num_attention_heads")
    norm = spec.NormConfig(eps=values["norm_eps"], bias=values["norm_bias"])
    blocks = {}
    for kind, (key, theta) in _THETAS.items():
        own = values if values["rope_parameters"] else values | {"rope_theta": values[key]}
        rotary = read_rotary(own, d_model // num_heads, theta=theta, layer_type=kind)
        side = values["local_attention"] // 2
        blocks[kind] = spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=num_heads,
                qkv_bias=values["attention_bias"],
                out_bias=values["attention_bias"],
                attention_dropout=values["attention_dropout"],
                score=spec.ScoreConfig(window=(side, side) if kind == SLIDING else None),
                rotary=rotary,
            ),
            feed_forward=spec.GatedFeedForwardConfig(
                d_model=d_model,
                d_ff=require(values, "intermediate_size"),
                activation=hf.read_activation(values, "hidden_activation"),
                bias=values["mlp_bias"],
            ),
            norm=norm,
        )
    layers = [blocks[kind] for kind in _types(values)]
    layers[0] = replace(layers[0], attention_norm=False)
    return spec.EncoderConfig(
        layer=shortest_cycle(layers),
        num_layers=len(layers),
        embedding=token_embedding(
            require(values, "vocab_size"), d_model, norm=norm, dropout=values["embedding_dropout"]
        ),
        final_norm=norm,
    )


def _read_masked_lm(values: dict[str, Any], rows: int | None) -> spec.MaskedLMHeadConfig:
    return spec.MaskedLMHeadConfig(
        d_model=values["hidden_size"],
        vocab_size=values["vocab_size"],
        activation=hf.read_activation(values, "classifier_activation"),
        eps=values["norm_eps"],
        transform_bias=values["classifier_bias"],
        norm_bias=values["norm_bias"],
    )


def _types(values: Mapping[str, Any]) -> list[str]:
    number, every = require(values, "num_hidden_layers"), values["global_attn_every_n_layers"]
    types = values["layer_types"] or [SLIDING if i % every else FULL for i in range(number)]
    if len(types) != number or set(types) - {FULL, SLIDING}:
        raise ValueError(f"layer_types: {types} must be {number} of {FULL} and {SLIDING}")
    return list(types)


def _write(encoder: spec.EncoderConfig, heads: Mapping[str, HeadConfig]) -> dict[str, Any]:
    layer, embedding = encoder.layers[0], expect(encoder.embedding, spec.TextEmbeddingConfig)
    windows = [each.attention.score.window for each in encoder.layers]
    types = [FULL if window is None else SLIDING for window in windows]
    sides = [window[0] for window in windows if isinstance(window, tuple)]
    rotaries = {
        kind: expect(each.attention.rotary, spec.RotaryConfig)
        for kind, each in zip(types, encoder.layers, strict=True)
    }
    head = expect(heads.get("masked_lm"), spec.MaskedLMHeadConfig) if heads else None
    return {
        "attention_bias": layer.attention.out_bias,
        "attention_dropout": layer.attention.attention_dropout,
        "classifier_activation": hf.write_activation(head.activation) if head else "gelu",
        "classifier_bias": bool(head and head.transform_bias),
        "embedding_dropout": embedding.dropout,
        "hidden_activation": hf.write_activation(layer.feed_forward.activation),
        "hidden_size": encoder.d_model,
        "intermediate_size": layer.feed_forward.d_ff,
        "layer_types": types,
        "local_attention": 2 * sides[0] if sides else 128,
        "mlp_bias": layer.feed_forward.bias,
        "norm_bias": layer.norm.bias,
        "norm_eps": layer.norm.of(1).eps,
        "num_attention_heads": layer.attention.num_heads,
        "num_hidden_layers": encoder.num_layers,
        "rope_parameters": {
            kind: rotary_object(rotary, expect(layer.attention, spec.AttentionConfig).sizes[2])
            for kind, rotary in rotaries.items()
        },
        "vocab_size": embedding.vocab_size,
        **{_THETAS[kind][0]: rotary.theta for kind, rotary in rotaries.items()},
    }


def _transforms(encoder: spec.EncoderConfig) -> Mapping[str, Transform]:
    return {**both_parts(_QKV, Split(3)), **both_parts(_GATE_UP, Split(2))}


MODERNBERT = EncoderFamily(
    name="modernbert",
    summary="ModernBERT (ModernBertModel, ModernBertForMaskedLM)",
    model_types=("modernbert",),
    architectures={"ModernBertForMaskedLM": ("masked_lm",), "ModernBertModel": ()},
    modules=_MODULES,
    heads={"masked_lm": Head(_HEAD, _read_masked_lm)},
    copies={"embeddings.tok_embeddings.weight": TiedCopy("decoder.weight")},
    settings=hf.settings_table(
        {
            **ROPE_SETTINGS,
            "attention_bias": Setting(bool, False),
            "attention_dropout": Setting(NUMBER, 0.0),
            "classifier_activation": Setting(str, "gelu"),
            "classifier_bias": Setting(bool, False),
            "embedding_dropout": Setting(NUMBER, 0.0),
            "global_attn_every_n_layers": Setting(int, 3, above=0),
            "global_rope_theta": Setting(NUMBER),
            "hidden_activation": Setting(str, "gelu"),
            "hidden_size": SIZE,
            "intermediate_size": SIZE,
            "layer_types": Setting(list),
            "local_attention": Setting(int, 128),
            "local_rope_theta": Setting(NUMBER),
            "mlp_bias": Setting(bool, False),
            "norm_bias": Setting(bool, False),
            "norm_eps": Setting(NUMBER, 1e-5),
            "num_attention_heads": SIZE,
            "num_hidden_layers": SIZE,
            "vocab_size": SIZE,
        },
        bookkeeping={
            "classifier_dropout",
            "classifier_pooling",
            "cls_token_id",
            "deterministic_flash_attn",
            "initializer_cutoff_factor",
            "layer_norm_eps",
            "mlp_dropout",
            "position_embedding_type",
            "reference_compile",
            "repad_logits_with_grad",
            "sparse_pred_ignore_index",
            "sparse_prediction",
        },
        fixed={"decoder_bias": (True,), "tie_word_embeddings": (True,)},
    ),
    sizes={
        "vocab_size": ("embeddings.tok_embeddings.weight", 0),
        "hidden_size": ("embeddings.tok_embeddings.weight", 1),
        "intermediate_size": ("layers.0.mlp.Wo.weight", 1),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.GatedFeedForwardConfig, rotary=spec.RotaryConfig),
    transforms=_transforms,
    prefix="model.",
    layers=("layers", "num_hidden_layers"),
)
