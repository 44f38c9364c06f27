"""Encoders of images, and the attention that pools them."""

from dataclasses import replace

import numpy as np

from diptych.spec import (
    AttentionConfig,
    AttentionPoolingConfig,
    FeedForwardConfig,
    NormConfig,
    VisionEncoderConfig,
)
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import linear, under
from parity_tests.components.room import EVERYTHING, QUERIES, Example, Room, X, key_mask
from parity_tests.components.rooms.encoder import run_layers
from parity_tests.components.rooms.feed_forward import feed_forward
from parity_tests.components.rooms.multi_head_attention import multi_head_attention
from parity_tests.components.rooms.norms import layer_norm
from parity_tests.components.rooms.patches import (
    IMAGES,
    MASKED_PATCHES,
    PATCHES,
    images_and_masks,
    patch_embedding,
)
from parity_tests.components.rooms.transformer_layers import GELU_LAYER, LAYER
from parity_tests.support.sizes import B, D, F, N

POOLING = AttentionPoolingConfig(
    attention=AttentionConfig(d_model=D, num_heads=N),
    feed_forward=FeedForwardConfig(d_model=D, d_ff=F),
)
GELU_POOLING = replace(
    POOLING, feed_forward=FeedForwardConfig(d_model=D, d_ff=F, activation="gelu_tanh")
)
VISION = VisionEncoderConfig(
    embedding=PATCHES, layer=LAYER, num_layers=2, pooling="attention", attention_pooling=POOLING
)
CLASS_VISION = VisionEncoderConfig(
    embedding=MASKED_PATCHES, layer=GELU_LAYER, num_layers=1, pooling="class"
)


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


def _images(draw):
    return images_and_masks(draw)[0]


def _attended(draw):
    config = replace(CLASS_VISION, pooling="attention", attention_pooling=GELU_POOLING)
    arguments, options = images_and_masks(draw)
    return ComponentCase(config, arguments, options | EVERYTHING, is_working=True)


ATTENTION_POOLING = Room(
    Example(POOLING, (X,)),
    changes={
        "attention": AttentionConfig(d_model=D, num_heads=1),
        "feed_forward": FeedForwardConfig(d_model=D, d_ff=F + 2),
        "norm": NormConfig(eps=0.1),
    },
    formula=attention_pooling,
    calls={
        "AttentionPooling": lambda draw: ComponentCase(
            GELU_POOLING,
            {"x": draw.normal(B, QUERIES, D)},
            {"key_mask": key_mask(QUERIES, 7)},
            is_working=True,
        )
    },
    is_slow=True,
)
VISION_ENCODER = Room(
    Example(VISION, (IMAGES,)),
    changes={
        "embedding": replace(PATCHES, class_token=False),
        "layer": replace(LAYER, d_ff=13),
        "num_layers": 3,
        "final_norm": None,
        "pooling": {"pooling": "class_mean", "attention_pooling": None},
        "attention_pooling": replace(POOLING, norm=NormConfig(eps=0.1)),
    },
    formula=vision_encoder,
    calls={
        "VisionEncoder, attention": _attended,
        "VisionEncoder, class": lambda draw: ComponentCase(
            CLASS_VISION, _images(draw), is_slow=True
        ),
        "VisionEncoder, tanh, no final norm": lambda draw: ComponentCase(
            replace(CLASS_VISION, pooling="tanh", final_norm=None), _images(draw), is_slow=True
        ),
        "VisionEncoder, class and mean": lambda draw: ComponentCase(
            replace(CLASS_VISION, pooling="class_mean"), _images(draw), is_slow=True
        ),
    },
    is_slow=True,
)
