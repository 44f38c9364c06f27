"""Encoders of images beside those of ``transformers``: ViT, DINOv2, CLIP and SigLIP."""

from typing import Any

import numpy as np
import pytest
import torch
from transformers import CLIPVisionConfig, Dinov2Config, SiglipVisionConfig, ViTConfig
from transformers.models.clip import modeling_clip
from transformers.models.dinov2 import modeling_dinov2
from transformers.models.siglip import modeling_siglip
from transformers.models.vit import modeling_vit

from diptych.spec import (
    AttentionConfig,
    AttentionPoolingConfig,
    BlockConfig,
    FeedForwardConfig,
    NormConfig,
    PatchEmbeddingConfig,
    VisionEncoderConfig,
)
from parity_tests.components.case import ComponentCase
from parity_tests.support.peers import (
    Peer,
    Tensors,
    call_recording,
    judge_peer,
    named_stack,
    thirds,
)

B, C, P, D, N, F, LAYERS = 2, 5, 3, 24, 4, 48, 2
WIDE, SQUARE = (6, 12), 9  # only ViT takes images that are not square
EPS = 1e-4  # no family's own
SIZES: dict[str, Any] = {
    "hidden_size": D, "num_attention_heads": N, "intermediate_size": F, "num_channels": C,
    "num_hidden_layers": LAYERS, "patch_size": P, "layer_norm_eps": EPS,
    "attn_implementation": "eager",
}  # fmt: skip
NORM = NormConfig(eps=EPS)
ASKED = {"need_weights": True, "need_hidden_states": True}
RETURNED = {"output_attentions": True, "output_hidden_states": True}
PATCHES = {
    "patch_embeddings.projection": "patch_conv",
    "embeddings": "embedding",
    "cls_token": "class_param",
    "position_embeddings": "position_embed.weight",
    "mask_token": "mask_param",
}
FEED_FORWARD = {"mlp": "feed_forward", "fc1": "up_proj", "fc2": "down_proj"}
CLIP = {
    "patch_embedding": "patch_conv",
    "embeddings": "embedding",
    "position_embedding": "position_embed",
    "encoder.layers": "layers",
    "self_attn": "attention",
    "layer_norm1": "attention_norm",
    "layer_norm2": "feed_forward_norm",
    "post_layernorm": "final_norm",
    **FEED_FORWARD,
}


def layer(activation: str, **options: Any) -> BlockConfig:
    """Return a pre-norm layer."""
    return BlockConfig(
        attention=AttentionConfig(d_model=D, num_heads=N),
        feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation=activation),
        norm=NORM,
        **options,
    )


def encoder(size: int | tuple[int, int], block: BlockConfig, **options: Any) -> VisionEncoderConfig:
    """Return an encoder; options that begin with ``patch_`` are the embedding's."""
    own = {name: options.pop(name) for name in ("pooling", "attention_pooling") if name in options}
    patches = PatchEmbeddingConfig(
        image_size=size, patch_size=P, d_model=D, num_channels=C, **options
    )
    return VisionEncoderConfig(
        embedding=patches, layer=block, num_layers=LAYERS, final_norm=NORM, **own
    )


def images(config: VisionEncoderConfig, **options: Any) -> ComponentCase:
    """Return a call of ours."""
    shape = (B, C, *config.embedding.sides)
    given = {"images": np.random.default_rng(1).normal(size=shape)}
    return ComponentCase(config, given, ASKED | options)


def encoded(model: Any, inputs: Tensors, **options: Any) -> Tensors:
    """Call a model of ``transformers``."""
    found = model(inputs["images"], **RETURNED, **options)
    return named_stack(
        found.last_hidden_state, found.hidden_states, found.attentions, pooled=found.pooler_output
    )


def vit() -> Peer:
    """Exact GELU, a tanh pooler, and a mask token in place of some patches."""
    theirs = ViTConfig(**SIZES, image_size=WIDE, hidden_act="gelu", pooler_output_size=D)
    config = encoder(WIDE, layer("gelu"), pooling="tanh", mask_token=True)
    hidden = np.array([[1, 0, 0, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0]], bool)
    names = PATCHES | FEED_FORWARD | {
        "o_proj": "out_proj", "layernorm_before": "attention_norm",
        "layernorm_after": "feed_forward_norm", "layernorm": "final_norm",
        "pooler.dense": "pooler_proj",
    }  # fmt: skip
    return Peer(
        lambda: modeling_vit.ViTModel(theirs, use_mask_token=True),
        images(config, patch_mask=hidden),
        lambda model, inputs: encoded(model, inputs, bool_masked_pos=torch.from_numpy(hidden)),
        names,
    )


DINOV2 = FEED_FORWARD | {
    "norm1": "attention_norm", "norm2": "feed_forward_norm", "o_proj": "out_proj",
    "layer_scale1.lambda1": "attention_scale_param",
    "layer_scale2.lambda1": "feed_forward_scale_param",
}  # fmt: skip


def _dinov2_config() -> Dinov2Config:
    sizes = SIZES | {"mlp_ratio": F // D}
    del sizes["intermediate_size"]
    return Dinov2Config(**sizes, image_size=SQUARE, hidden_act="gelu", use_mask_token=True)


def dinov2() -> Peer:
    """Factors on every branch, and a mask token."""
    hidden = np.arange(9) % np.array([[2], [4]]) == 1
    block = layer("gelu", layer_scale=0.5)
    return Peer(
        lambda: modeling_dinov2.Dinov2Model(_dinov2_config()),
        images(encoder(SQUARE, block, pooling="class", mask_token=True), patch_mask=hidden),
        lambda model, inputs: encoded(model, inputs, bool_masked_pos=torch.from_numpy(hidden)),
        PATCHES | DINOV2 | {"encoder.layer": "layers", "layernorm": "final_norm"},
    )


def dinov2_layer() -> Peer:
    """One layer alone."""
    x = np.random.default_rng(2).normal(size=(B, 7, D))

    def call(module: Any, inputs: Tensors) -> Tensors:
        output, [(_, weights)] = call_recording(module, ["attention"], inputs["x"])
        return {"[output]": output, "[attention_weights]": weights}

    return Peer(
        lambda: modeling_dinov2.Dinov2Layer(_dinov2_config()),
        ComponentCase(layer("gelu", layer_scale=0.5), {"x": x}, {"need_weights": True}),
        call,
        DINOV2,
    )


def clip() -> Peer:
    """Quick GELU, a norm before the layers, no bias in the patches; only the pooled row is normed
    at the end, so that its last norm is applied to all of its rows here."""
    theirs = CLIPVisionConfig(**SIZES, image_size=SQUARE, hidden_act="quick_gelu")
    config = encoder(SQUARE, layer("quick_gelu"), pooling="class", patch_bias=False, norm=NORM)

    def call(model: Any, inputs: Tensors) -> Tensors:
        found = encoded(model, inputs)
        return found | {"[output]": model.post_layernorm(found["[output]"])}

    names = CLIP | {"class_embedding": "class_param", "pre_layrnorm": "embedding.embed_norm"}
    return Peer(lambda: modeling_clip.CLIPVisionModel(theirs), images(config), call, names)


def siglip() -> Peer:
    """GELU by tanh, no class token, and a learnt query that reads the output."""
    theirs = SiglipVisionConfig(**SIZES, image_size=SQUARE, hidden_act="gelu_pytorch_tanh")
    block = layer("gelu_tanh")
    pooling = AttentionPoolingConfig(
        attention=block.attention, feed_forward=block.feed_forward, norm=NORM
    )
    config = encoder(
        SQUARE, block, class_token=False, pooling="attention", attention_pooling=pooling
    )
    names = CLIP | {"head": "attention_pooling", "probe": "query_param"}
    names |= {"attention_pooling.layernorm": "attention_pooling.feed_forward_norm"}
    return Peer(
        lambda: modeling_siglip.SiglipVisionModel(theirs), images(config), encoded, names, thirds
    )


def siglip_head() -> Peer:
    """The learnt query alone, over any number of positions."""
    theirs = SiglipVisionConfig(**SIZES, hidden_act="gelu_pytorch_tanh")
    block = layer("gelu_tanh")
    config = AttentionPoolingConfig(
        attention=block.attention, feed_forward=block.feed_forward, norm=NORM
    )
    x = np.random.default_rng(2).normal(size=(B, 7, D))
    return Peer(
        lambda: modeling_siglip.SiglipMultiheadAttentionPoolingHead(theirs),
        ComponentCase(config, {"x": x}),
        lambda module, inputs: {"output": module(inputs["x"])},
        FEED_FORWARD | {"probe": "query_param", "layernorm": "feed_forward_norm"},
        thirds,
    )


PEERS = {
    "vit": vit(),
    "dinov2": dinov2(),
    "dinov2 layer": dinov2_layer(),
    "clip": clip(),
    "siglip": siglip(),
    "siglip head": siglip_head(),
}


@pytest.mark.parametrize("name", PEERS)
def test_as_in_transformers(name):
    judge_peer(PEERS[name])
