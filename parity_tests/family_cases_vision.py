"""Tiny models of the families that read images."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import transformers

from parity_tests.tiny_transformers import FamilyCase

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


VISION_CASES = {
    "vit": image_model(
        "vit", "ViTForImageClassification", "ViTConfig", (2, 5, 8, 12), **VIT, layer_norm_eps=1e-3
    ),
    "vit base": image_model(
        "vit", "ViTModel", "ViTConfig", (2, 5, 8, 12), **VIT, qkv_bias=False, hidden_act="gelu_new"
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
}
