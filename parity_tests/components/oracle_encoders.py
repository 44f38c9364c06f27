"""Encoders of images and audio in numpy float64, from the papers' formulas."""

import numpy as np

from parity_tests.components.oracle_attention_modules import multi_head_attention
from parity_tests.components.oracle_parts import (
    ACTIVATIONS,
    feed_forward,
    layer_norm,
    linear,
    under,
)
from parity_tests.components.oracle_stacks import encoder, run_layers


def _convolve(tensors, name, x, *, stride, padding):
    """Cross-correlate (..., channels, positions..) with a kernel (O, I, K..), sum by sum."""
    kernel = tensors[f"{name}.weight"]
    rank = kernel.ndim - 2
    x = np.pad(x, [(0, 0)] * (x.ndim - rank) + [(padding, padding)] * rank)
    steps = [(n - k) // stride + 1 for n, k in zip(x.shape[-rank:], kernel.shape[2:], strict=True)]
    found = np.zeros((*x.shape[: -rank - 1], len(kernel), *steps))
    for place in np.ndindex(*kernel.shape[2:]):
        seen = x[(..., *(slice(p, None, stride) for p in place))]
        seen = seen[(..., *(slice(n) for n in steps))]
        factor = kernel[(..., *place)]
        found += np.moveaxis(np.tensordot(factor, seen, (1, x.ndim - rank - 1)), 0, -rank - 1)
    bias = tensors.get(f"{name}.bias", np.zeros(len(kernel)))
    return found + bias.reshape(-1, *[1] * rank)


def patch_embedding(config, tensors, images, *, patch_mask=None):
    x = _convolve(tensors, "patch_conv", images, stride=config.patch_size, padding=0)
    x = np.swapaxes(x.reshape(*x.shape[:-2], -1), -1, -2)
    if patch_mask is not None:
        x = np.where(patch_mask[..., None], tensors["mask_param"], x)
    if config.class_token:
        first = np.broadcast_to(tensors["class_param"], (*x.shape[:-2], 1, config.d_model))
        x = np.concatenate([first, x], axis=-2)
    x = x + tensors["position_embed.weight"]
    if config.norm is None:
        return x
    return layer_norm(config.norm.of(config.d_model), under("embed_norm", tensors), x)


def attention_pooling(config, tensors, x, **options):
    query = np.broadcast_to(tensors["query_param"], (*x.shape[:-2], 1, config.attention.d_model))
    inner = under("attention", tensors)
    x = multi_head_attention(config.attention, inner, query, x, x, **options)[0][..., 0, :]
    normed = layer_norm(
        config.norm.of(config.attention.d_model), under("feed_forward_norm", tensors), x
    )
    return x + feed_forward(config.feed_forward, under("feed_forward", tensors), normed)


def vision_encoder(config, tensors, images, *, patch_mask=None, **options):
    embedded = patch_embedding(
        config.embedding, under("embedding", tensors), images, patch_mask=patch_mask
    )
    found = run_layers(config, tensors, embedded, **options)
    pool = {
        None: lambda x: None,
        "class": lambda x: x[..., 0, :],
        "class_mean": lambda x: np.append(x[..., 0, :], x[..., 1:, :].mean(-2), axis=-1),
        "tanh": lambda x: np.tanh(linear(tensors, "pooler_proj", x[..., 0, :])),
        "attention": lambda x: attention_pooling(
            config.attention_pooling, under("attention_pooling", tensors), x
        ),
    }
    return {**found, "pooled": pool[config.pooling](found["output"])}


def audio_encoder(config, tensors, features, **options):
    x = features
    for name, stride in (("first_conv1d", 1), ("second_conv1d", 2)):
        x = ACTIVATIONS["gelu"](_convolve(tensors, name, x, stride=stride, padding=1))
    x = np.swapaxes(x, -1, -2)
    return run_layers(
        config, tensors, x + tensors["position_embed.weight"][: x.shape[-2]], **options
    )


def encoder_with_projection(config, tensors, inputs, **options):
    inner = under("encoder", tensors)
    found = (encoder if hasattr(config.encoder, "pooler") else vision_encoder)(
        config.encoder, inner, inputs, **options
    )
    return {"encoded": found, "projected": linear(tensors, "output_proj", found["pooled"])}


def dual_encoder(
    config, tensors, images, ids, *, patch_mask=None, key_mask=None, position_ids=None, **options
):
    """Cosines of every image with every text (Radford et al. 2021, figure 3)."""
    own = {
        "image": (config.image, vision_encoder, images, {"patch_mask": patch_mask}),
        "text": (config.text, encoder, ids, {"key_mask": key_mask, "position_ids": position_ids}),
    }
    found, vectors = {}, {}
    for name, (part, plain, inputs, more) in own.items():
        apply = encoder_with_projection if hasattr(part, "projection_dim") else plain
        result = apply(part, under(name, tensors), inputs, **more, **options)
        vector = result.get("projected", result.get("pooled"))
        found[name] = result.get("encoded", result)
        vectors[name] = vector / np.linalg.norm(vector, axis=-1, keepdims=True)
    cosines = vectors["image"] @ np.swapaxes(vectors["text"], -1, -2)
    logits = cosines * np.exp(tensors["logit_scale_param"])
    return {
        "logits": logits + tensors.get("logit_bias_param", 0.0),
        "image_vectors": vectors["image"],
        "text_vectors": vectors["text"],
        **found,
    }
