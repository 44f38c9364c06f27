"""Encoders of images and audio in numpy float64, from the papers' formulas."""

import numpy as np

from parity_tests.oracle_attention_modules import multi_head_attention
from parity_tests.oracle_parts import ACTIVATIONS, feed_forward, layer_norm, linear, under
from parity_tests.oracle_stacks import run_layers


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
