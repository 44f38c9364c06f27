"""Two encoders whose vectors are compared, and the projections that make them comparable."""

from dataclasses import replace

import numpy as np

from diptych.spec import DualEncoderConfig, EncoderConfig, EncoderWithProjectionConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import linear, under
from parity_tests.components.room import (
    EVERYTHING,
    IDS,
    QUERIES,
    Example,
    Room,
    key_mask,
    random_input,
)
from parity_tests.components.rooms.embedding import TEXT
from parity_tests.components.rooms.encoder import POOLED, encoder
from parity_tests.components.rooms.patches import images_and_masks
from parity_tests.components.rooms.transformer_layers import LAYER
from parity_tests.components.rooms.vision import CLASS_VISION, VISION, vision_encoder
from parity_tests.support.sizes import NUM_LABELS, VOCAB, B, D

PROJECTED = EncoderWithProjectionConfig(
    encoder=EncoderConfig(layer=LAYER, num_layers=2, embedding=TEXT, pooled_token="highest"),
    projection_dim=D,
    bias=False,
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


def _both(draw):
    config = DualEncoderConfig(
        image=EncoderWithProjectionConfig(encoder=CLASS_VISION, projection_dim=D, bias=False),
        text=POOLED,
        logit_bias=True,
    )
    images, _ = images_and_masks(draw, count=3)
    options = {"key_mask": key_mask(QUERIES, 7), **EVERYTHING}
    return ComponentCase(config, images | {"ids": draw.ids()}, options)


ENCODER_WITH_PROJECTION = Room(
    Example(PROJECTED, (IDS,)),
    changes={
        "encoder": replace(PROJECTED.encoder, num_layers=1),
        "projection_dim": 2,
        "bias": True,
    },
    formula=encoder_with_projection,
    calls={
        "EncoderWithProjection": lambda draw: ComponentCase(
            EncoderWithProjectionConfig(encoder=POOLED, projection_dim=NUM_LABELS, bias=False),
            {"ids": draw.ids()},
            {"key_mask": key_mask(QUERIES, 7), **EVERYTHING},
            is_slow=True,
        ),
        "EncoderWithProjection, images": lambda draw: ComponentCase(
            EncoderWithProjectionConfig(encoder=CLASS_VISION, projection_dim=NUM_LABELS),
            images_and_masks(draw)[0],
            is_slow=True,
        ),
    },
    is_slow=True,
)
DUAL_ENCODER = Room(
    Example(
        DualEncoderConfig(image=VISION, text=PROJECTED, logit_bias=True),
        (random_input(B, 2, 3, 8, 12), np.stack([IDS, IDS[:, ::-1], (IDS + 1) % VOCAB], 1)),
    ),
    changes={
        "image": replace(VISION, num_layers=1),
        "text": replace(PROJECTED, bias=True),
        "logit_bias": False,
    },
    formula=dual_encoder,
    calls={"DualEncoder": _both},
    is_slow=True,
)
