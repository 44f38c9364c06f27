"""Tiny models of the families that read images."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import transformers

from parity_tests.support.tiny_transformers import (
    PADDING,
    VOCAB,
    FamilyCase,
    our_text_inputs,
    slow,
)

LISTS = {"hidden_states": "[hidden_states]", "attentions": "[attention_weights]"}
HEAD_LISTS = {theirs: f"[encoded]{ours}" for theirs, ours in LISTS.items()}
MODEL = {"last_hidden_state": "[output]", "pooler_output": "[pooled]"}
VIT = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 44,
    "image_size": [8, 12],
    "patch_size": 4,
    "num_channels": 5,
    "num_labels": 7,
}
DINOV2 = {**VIT, "image_size": 12, "mlp_ratio": 2}
del DINOV2["intermediate_size"]


def images(*shape: int) -> dict[str, np.ndarray]:
    """Return images of a shape, by their name."""
    pixels = np.random.default_rng(0).normal(size=shape)
    return {"pixel_values": pixels.astype(np.float32)}


def masked_images(num_patches: int, *shape: int) -> dict[str, np.ndarray]:
    """Return images with patches to be replaced."""
    mask = np.random.default_rng(1).random((shape[0], num_patches)) < 0.4
    return images(*shape) | {"bool_masked_pos": mask}


def our_images(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same by our names."""
    names = {"pixel_values": "images", "bool_masked_pos": "patch_mask"}
    return {names[name]: array for name, array in inputs.items()}


def image_model(family: str, name: str, config: str, shape: Any, **settings: Any) -> FamilyCase:
    """Return a case of an encoder of images, or of one with a classifier."""
    is_classifier = "Classification" in name
    return FamilyCase(
        family=family,
        model=getattr(transformers, name),
        config=partial(getattr(transformers, config), **settings),
        inputs=partial(images, *shape),
        ours=our_images,
        outputs={"logits": "[projected]"} if is_classifier else MODEL,
        lists=HEAD_LISTS if is_classifier else LISTS,
        last="",
    )


def text(*, end: int) -> dict[str, np.ndarray]:
    """Return three prompts, the end token at places of their own, then padding."""
    ids = np.random.default_rng(2).integers(3, VOCAB - 2, (3, 11))
    mask = np.ones_like(ids)
    for row, place in enumerate((10, 6, 8)):
        ids[row, place], ids[row, place + 1 :], mask[row, place + 1 :] = end, PADDING, 0
    return {"input_ids": ids, "attention_mask": mask}


def images_and_text(*shape: int, end: int) -> dict[str, np.ndarray]:
    """Return images and prompts, not as many."""
    return images(*shape) | text(end=end)


def our_images_and_text(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the same by our names."""
    return {"images": inputs["pixel_values"], **our_text_inputs(inputs)}


def two_towers(family: str, stem: str, *, output: str, **settings: Any) -> FamilyCase:
    """Return a case of both encoders; ``output`` is our name of what that of images returns."""
    lists = {
        f"{theirs}_model_output.{name}": f"[{ours}]{path}"
        for theirs, ours in (("vision", "image"), ("text", "text"))
        for name, path in LISTS.items()
    }
    return FamilyCase(
        family=family,
        model=getattr(transformers, f"{stem}Model"),
        config=partial(getattr(transformers, f"{stem}Config"), **settings),
        inputs=partial(images_and_text, 2, 5, 12, 12, end=END),
        ours=our_images_and_text,
        outputs={
            "logits_per_image": "[logits]",
            "image_embeds": "[image_vectors]",
            "text_embeds": "[text_vectors]",
            "text_model_output.last_hidden_state": "[text][output]",
            "vision_model_output.last_hidden_state": f"[image]{output}",
        },
        lists=lists,
        last="",
    )


def text_model(family: str, name: str, config: str, outputs: Any, **settings: Any) -> FamilyCase:
    """Return a case of an encoder of text alone."""
    return FamilyCase(
        family=family,
        model=getattr(transformers, name),
        config=partial(getattr(transformers, config), **settings),
        inputs=partial(text, end=END),
        ours=our_text_inputs,
        outputs=outputs,
        lists=HEAD_LISTS if "[projected]" in outputs.values() else LISTS,
        last="",
    )


END = VOCAB - 1
IMAGE_TOWER = {
    "hidden_size": 24,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "num_channels": 5,
    "image_size": 12,
    "patch_size": 4,
}
TEXT_TOWER = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
    "pad_token_id": PADDING,
    "bos_token_id": 0,
    "eos_token_id": END,
}
HIGHEST = TEXT_TOWER | {"eos_token_id": 2}
PROJECTED = {"last_hidden_state": "[encoded][output]"}
UNNORMED = {"last_hidden_state": "[hidden_states][2]", "pooler_output": "[pooled]"}
VISION_CASES = {
    "vit": image_model(
        "vit", "ViTForImageClassification", "ViTConfig", (2, 5, 8, 12), **VIT, layer_norm_eps=1e-3
    ),
    "vit base": slow(
        image_model(
            "vit",
            "ViTModel",
            "ViTConfig",
            (2, 5, 8, 12),
            **VIT,
            qkv_bias=False,
            hidden_act="gelu_new",
        )
    ),
    "dinov2": image_model(
        "dinov2",
        "Dinov2ForImageClassification",
        "Dinov2Config",
        (2, 5, 12, 12),
        **DINOV2,
        layerscale_value=0.5,
    ),
    "dinov2 base, gated, masked": replace(
        image_model("dinov2", "Dinov2Model", "Dinov2Config", (), **DINOV2, use_swiglu_ffn=True),
        inputs=partial(masked_images, 9, 2, 5, 12, 12),
    ),
    "clip": two_towers(
        "clip",
        "CLIP",
        output="[hidden_states][2]",
        text_config=TEXT_TOWER | {"projection_dim": 20},
        vision_config=IMAGE_TOWER | {"projection_dim": 20},
        projection_dim=20,
    ),
    "clip, pooled at the highest id": two_towers(
        "clip",
        "CLIP",
        output="[hidden_states][2]",
        text_config=HIGHEST | {"hidden_act": "gelu"},
        vision_config=IMAGE_TOWER,
        projection_dim=20,
    ),
    "clip text": text_model("clip", "CLIPTextModel", "CLIPTextConfig", MODEL, **TEXT_TOWER),
    "clip text, projected": text_model(
        "clip",
        "CLIPTextModelWithProjection",
        "CLIPTextConfig",
        PROJECTED | {"text_embeds": "[projected]"},
        **TEXT_TOWER,
        projection_dim=20,
    ),
    "clip image": replace(
        image_model("clip", "CLIPVisionModel", "CLIPVisionConfig", (2, 5, 12, 12), **IMAGE_TOWER),
        outputs=UNNORMED,
    ),
    "clip image, projected": replace(
        image_model(
            "clip",
            "CLIPVisionModelWithProjection",
            "CLIPVisionConfig",
            (2, 5, 12, 12),
            **IMAGE_TOWER,
            projection_dim=20,
        ),
        outputs={"image_embeds": "[projected]"},
        lists=HEAD_LISTS,
    ),
    "siglip": two_towers(
        "siglip",
        "Siglip",
        output="[output]",
        text_config=TEXT_TOWER | {"projection_size": 24},
        vision_config=IMAGE_TOWER,
    ),
    "siglip text": text_model(
        "siglip",
        "SiglipTextModel",
        "SiglipTextConfig",
        PROJECTED | {"pooler_output": "[projected]"},
        **TEXT_TOWER,
        projection_size=20,
    ),
    "siglip image": image_model(
        "siglip", "SiglipVisionModel", "SiglipVisionConfig", (2, 5, 12, 12), **IMAGE_TOWER
    ),
    "siglip image, no pooling": replace(
        image_model(
            "siglip",
            "SiglipVisionModel",
            "SiglipVisionConfig",
            (2, 5, 12, 12),
            **IMAGE_TOWER,
            vision_use_head=False,
        ),
        outputs={"last_hidden_state": "[output]"},
    ),
}
