"""ViT (Dosovitskiy et al. 2021) as ``transformers`` stores it."""

from collections.abc import Collection
from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind
from .image_family import (
    MODULES,
    ROW,
    SIZES,
    TRANSFORMS,
    ImageFamily,
    read_size,
    read_square,
    write_size,
)

_LAYER, _OURS = "encoder.layer.{i}", "layers.{i}"
_MODULES = {
    **MODULES,
    f"{_LAYER}.layernorm_before": f"{_OURS}.attention_norm",
    f"{_LAYER}.layernorm_after": f"{_OURS}.feed_forward_norm",
    f"{_LAYER}.intermediate.dense": f"{_OURS}.feed_forward.up_proj",
    f"{_LAYER}.output.dense": f"{_OURS}.feed_forward.down_proj",
    "pooler.dense": "pooler_proj",
}


def _read(values: dict[str, Any]) -> spec.VisionEncoderConfig:
    d_model = require(values, "hidden_size")
    dropout = values["hidden_dropout_prob"]
    norm = spec.NormConfig(eps=values["layer_norm_eps"])
    if values["pooler_output_size"] not in (None, d_model):
        raise ValueError(
            f"pooler_output_size: {values['pooler_output_size']} is not supported, only "
            f"hidden_size={d_model}"
        )
    return spec.VisionEncoderConfig(
        embedding=spec.PatchEmbeddingConfig(
            image_size=read_size(values, "image_size"),
            patch_size=read_square(values, "patch_size"),
            d_model=d_model,
            num_channels=require(values, "num_channels"),
            mask_token=values["mask_token"],
            dropout=dropout,
        ),
        layer=spec.BlockConfig(
            attention=spec.AttentionConfig(
                d_model=d_model,
                num_heads=require(values, "num_attention_heads"),
                qkv_bias=values["qkv_bias"],
                attention_dropout=values["attention_probs_dropout_prob"],
            ),
            feed_forward=spec.FeedForwardConfig(
                d_model=d_model,
                d_ff=require(values, "intermediate_size"),
                activation=hf.read_activation(values, "hidden_act"),
            ),
            norm=norm,
            dropout=dropout,
        ),
        num_layers=require(values, "num_hidden_layers"),
        final_norm=norm,
        pooling=values["pooling"],
    )


def _write(config: spec.VisionEncoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return {
        "attention_probs_dropout_prob": layer.attention.attention_dropout,
        "hidden_act": hf.write_activation(layer.feed_forward.activation),
        "hidden_dropout_prob": layer.dropout,
        "hidden_size": config.d_model,
        "image_size": write_size(config.embedding.image_size),
        "intermediate_size": layer.feed_forward.d_ff,
        "layer_norm_eps": layer.norm.of(1).eps,
        "num_attention_heads": layer.attention.num_heads,
        "num_channels": config.embedding.num_channels,
        "num_hidden_layers": config.num_layers,
        "patch_size": config.embedding.patch_size,
        "pooler_output_size": config.d_model,
        "qkv_bias": layer.attention.qkv_bias,
    }


def _pooling(names: Collection[str]) -> str | None:
    return "tanh" if "pooler.dense.weight" in names else None


VIT = ImageFamily(
    name="vit",
    model_types=("vit",),
    prefix="vit.",
    summary="ViT (ViTModel, ViTForImageClassification), with or without vit.",
    architectures=("ViTForImageClassification", "ViTModel"),
    modules=_MODULES,
    settings=hf.settings_table(
        {
            **hf.LABELS,
            "attention_probs_dropout_prob": Setting(NUMBER, 0.0),
            "hidden_act": Setting(str, "gelu"),
            "hidden_dropout_prob": Setting(NUMBER, 0.0),
            "hidden_size": SIZE,
            "image_size": Setting((int, list)),
            "intermediate_size": SIZE,
            "layer_norm_eps": Setting(NUMBER, 1e-12),
            "num_attention_heads": SIZE,
            "num_channels": SIZE,
            "num_hidden_layers": SIZE,
            "patch_size": Setting((int, list)),
            "pooler_output_size": Setting(int),
            "qkv_bias": Setting(bool),
        },
        bookkeeping={"encoder_stride"},
        fixed={"pooler_act": ("tanh", None)},
    ),
    sizes={**SIZES, "intermediate_size": ("encoder.layer.0.intermediate.dense.weight", 0)},
    read=_read,
    write=_write,
    stack_kind=StackKind(feed_forward=spec.FeedForwardConfig),
    transforms={**TRANSFORMS, "embeddings.mask_token": ROW},
    head_pooling="class",
    pooling=_pooling,
    poolings=("tanh", None),
)
