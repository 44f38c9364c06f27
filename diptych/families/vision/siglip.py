"""SigLIP (Zhai et al. 2023) as ``transformers`` stores it: the pooling's q, k, v in one."""

from typing import Any

from ... import spec
from ...rules import Split, Unstack
from ..settings import NUMBER, Setting, require
from . import parts
from .image_family import ROW
from .two_towers import TwoTowerFamily, tower_settings

_OURS = "attention_pooling"
_FUSED = "head.attention.in_proj"
_SETTINGS = {
    "hidden_act": Setting(str, "gelu_pytorch_tanh"),
    "layer_norm_eps": Setting(NUMBER, 1e-6),
}


def _read_image(values: dict[str, Any]) -> spec.VisionEncoderConfig:
    patches = {"class_token": False}
    if values["vision_use_head"] is False:
        return parts.read_image(values, patches)
    pooling = spec.AttentionPoolingConfig(
        attention=spec.AttentionConfig(
            d_model=require(values, "hidden_size"),
            num_heads=require(values, "num_attention_heads"),
        ),
        feed_forward=parts.read_feed_forward(values),
        norm=parts.read_norm(values),
    )
    return parts.read_image(values, patches, pooling="attention", attention_pooling=pooling)


def _read_text(values: dict[str, Any]) -> spec.EncoderConfig:
    return parts.read_text(values, spec.ScoreConfig(), "last")


def _write_image(config: spec.VisionEncoderConfig) -> dict[str, Any]:
    return parts.write_image(config) | {"vision_use_head": config.pooling == "attention"}


SIGLIP = TwoTowerFamily(
    name="siglip",
    model_types=("siglip", "siglip_vision_model", "siglip_text_model"),
    stem="Siglip",
    summary="SigLIP (SiglipModel, SiglipTextModel, SiglipVisionModel)",
    towers={
        "image": {
            **parts.MODULES["image"],
            "head.probe": f"{_OURS}.query_param",
            **{
                f"{_FUSED}_{part}": tuple(f"{_OURS}.attention.{x}_proj.{part}" for x in "qkv")
                for part in ("weight", "bias")
            },
            "head.attention.out_proj": f"{_OURS}.attention.out_proj",
            "head.layernorm": f"{_OURS}.feed_forward_norm",
            "head.mlp.fc1": f"{_OURS}.feed_forward.up_proj",
            "head.mlp.fc2": f"{_OURS}.feed_forward.down_proj",
        },
        "text": parts.MODULES["text"],
    },
    transforms={
        "head.probe": ROW,
        f"{_FUSED}_weight": Split(3),
        f"{_FUSED}_bias": Split(3),
    },
    settings=tower_settings(
        {
            "image": _SETTINGS | {"vision_use_head": Setting(bool)},
            "text": _SETTINGS | {"projection_size": Setting(int)},
        },
        "projection_size",
    ),
    defaults={
        "image": {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_channels": 3,
            "image_size": 224,
            "patch_size": 16,
        },
        "text": {
            "vocab_size": 32000,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "max_position_embeddings": 64,
        },
    },
    read={"image": _read_image, "text": _read_text},
    write={"image": _write_image, "text": parts.write_text},
    projections={"text": "head"},
    projection_setting="projection_size",
    projection_within=True,
    logit_bias=True,
    logits=Unstack(1),
    flags={"vision_use_head": "head.probe"},
)
