"""CLIP (Radford et al. 2021) as ``transformers`` stores it."""

from typing import Any

from ...spec import EncoderConfig, ScoreConfig, VisionEncoderConfig
from ..settings import NUMBER, Setting
from .parts import MODULES, read_image, read_norm, read_text, write_image, write_text
from .two_towers import TwoTowerFamily, tower_settings

_HIGHEST_ID = 2
"""The end token of old config.json files, whatever the vocabulary: the highest id is read."""

_SETTINGS = {"hidden_act": Setting(str, "quick_gelu"), "layer_norm_eps": Setting(NUMBER, 1e-5)}


def _read_image(values: dict[str, Any]) -> VisionEncoderConfig:
    patches = {"patch_bias": False, "norm": read_norm(values)}
    return read_image(values, patches, pooling="class")


def _read_text(values: dict[str, Any]) -> EncoderConfig:
    end = values["eos_token_id"]
    return read_text(values, ScoreConfig(is_causal=True), "highest" if end == _HIGHEST_ID else end)


def _write_text(config: EncoderConfig) -> dict[str, Any]:
    token = config.pooled_token
    if token is None or token == "last":
        raise ValueError(f"pooled_token={token!r}, only 'highest' or an id")
    return write_text(config) | {"eos_token_id": _HIGHEST_ID if token == "highest" else token}


CLIP = TwoTowerFamily(
    name="clip",
    model_types=("clip", "clip_vision_model", "clip_text_model"),
    stem="CLIP",
    summary="CLIP (CLIPModel, CLIPTextModel, CLIPVisionModel, with or without projection)",
    towers={
        "image": {
            **MODULES["image"],
            "embeddings.class_embedding": "embedding.class_param",
            "pre_layrnorm": "embedding.embed_norm",
        },
        "text": MODULES["text"],
    },
    settings=tower_settings(
        {"image": _SETTINGS, "text": _SETTINGS | {"eos_token_id": Setting(int, 49407)}},
        "projection_dim",
        {"dropout", "logit_scale_init_value"},
    ),
    defaults={
        "image": {
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_hidden_layers": 12,
            "num_attention_heads": 12,
            "num_channels": 3,
            "image_size": 224,
            "patch_size": 32,
        },
        "text": {
            "vocab_size": 49408,
            "hidden_size": 512,
            "intermediate_size": 2048,
            "num_hidden_layers": 12,
            "num_attention_heads": 8,
            "max_position_embeddings": 77,
        },
    },
    read={"image": _read_image, "text": _read_text},
    write={"image": write_image, "text": _write_text},
    projections={"image": "visual_projection", "text": "text_projection"},
    projection_setting="projection_dim",
)
