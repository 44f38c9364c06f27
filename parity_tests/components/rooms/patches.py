"""Images as sequences of patches."""

import numpy as np

from diptych.spec import NormConfig, PatchEmbeddingConfig
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import convolve, under
from parity_tests.components.room import Example, Room, random_input
from parity_tests.components.rooms.norms import layer_norm
from parity_tests.support.sizes import B, D

IMAGES = random_input(B, 3, 8, 12)
PATCHES = PatchEmbeddingConfig(image_size=(8, 12), patch_size=4, d_model=D)
MASKED_PATCHES = PatchEmbeddingConfig(image_size=(4, 6), patch_size=2, d_model=D, mask_token=True)


def patch_embedding(config, tensors, images, *, patch_mask=None):
    x = convolve(tensors, "patch_conv", images, stride=config.patch_size, padding=0)
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


def images_and_masks(draw, count=B):
    """Return arguments and options for ``MASKED_PATCHES``."""
    return {"images": draw.normal(count, 3, 4, 6)}, {"patch_mask": draw.coins(count, 6)}


PATCH_EMBEDDING = Room(
    Example(PATCHES, (IMAGES,)),
    changes={
        "image_size": (12, 8),
        "patch_size": 2,
        "d_model": 2 * D,
        "num_channels": 1,
        "patch_bias": False,
        "class_token": False,
        "mask_token": True,
        "norm": NormConfig(),
        "dropout": 0.5,
    },
    formula=patch_embedding,
    calls={
        "PatchEmbedding": lambda draw: ComponentCase(MASKED_PATCHES, *images_and_masks(draw)),
        "PatchEmbedding, no class, no bias, a norm": lambda draw: ComponentCase(
            PatchEmbeddingConfig(
                image_size=6,
                patch_size=3,
                d_model=D,
                num_channels=2,
                patch_bias=False,
                class_token=False,
                norm=NormConfig(),
            ),
            {"images": draw.normal(B, 2, 6, 6)},
        ),
    },
    is_slow=True,
)
