"""Images as sequences of vectors.

C channels   P patch size   D model width   T positions
"""

import math

import torch
from torch import Tensor, nn

from diptych.spec import NormConfig, PatchEmbeddingConfig
from diptych.spec.checks.attention import check_mask_dtype
from diptych.spec.checks.inputs import check_images, check_patch_mask
from diptych.spec.checks.sizes import check_broadcasts, check_floating

from . import functional
from .conv import conv2d
from .embedding import Embedding
from .functional._dtype import dtype_name
from .module import Module, config_of
from .norm import norm as new_norm


class PatchEmbedding(Module):
    """Patches of images mapped to vectors, with a class token and learned positions.

    Dosovitskiy et al. 2021, section 3.1: ``[class, patch_1 E, .., patch_n E] + positions``; patches
    are read in rows.

    Args:
        image_size: Height and width of the images, or one number for both.
        patch_size: Height and width P of a patch, dividing the image's.
        d_model: Width D of the vectors.
        num_channels: Number C of channels of the images.
        patch_bias: Whether the map carries a bias.
        class_token: Whether a learnt vector stands before the patches.
        mask_token: Whether a learnt vector can replace patches.
        norm: Of the result; None leaves it out.
        dropout: Rate on the result.

    Raises:
        ValueError: If a size or rate is refused.
    """

    def __init__(
        self,
        image_size: int | tuple[int, int],
        patch_size: int,
        d_model: int,
        *,
        num_channels: int = 3,
        patch_bias: bool = True,
        class_token: bool = True,
        mask_token: bool = False,
        norm: NormConfig | None = None,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.config = config = config_of(PatchEmbeddingConfig, locals())
        self.patch_conv = conv2d(
            num_channels, d_model, patch_size, stride=patch_size, bias=patch_bias
        )
        if class_token:
            self.class_param = nn.Parameter(nn.init.normal_(torch.empty(d_model), std=0.02))
        if mask_token:
            self.mask_param = nn.Parameter(torch.zeros(d_model))
        self.position_embed = Embedding(config.length, d_model)
        if norm is not None:
            self.embed_norm = new_norm(norm, d_model)

    def forward(self, images: Tensor, *, patch_mask: Tensor | None = None) -> Tensor:
        """Cut images into patches and embed each.

        Args:
            images: Floating (..., C, height, width).
            patch_mask: Boolean or integer, broadcasting to (..., number of patches), true or not 0
                where the mask token replaces a patch.

        Returns:
            Vectors (..., T, D), in the dtype of the parameters; T is the number of patches, plus 1
            with a class token.

        Raises:
            ValueError: If images are of another size or number of channels, or a mask is given
                without a mask token or does not fit.
            TypeError: If the images are not floating or the mask is.
        """
        config = self.config
        check_images(tuple(images.shape), config.num_channels, config.sides)
        check_floating(images=dtype_name(images))
        *batch, C, height, width = images.shape
        # A convolution that steps by its own width is one linear map of every patch.
        x = self.patch_conv(images.reshape((math.prod(batch), C, height, width)))
        x = x.reshape((*batch, config.d_model, config.num_patches)).transpose(-1, -2)

        if patch_mask is not None:
            check_patch_mask(mask_token=config.mask_token)
            check_mask_dtype(patch_mask=dtype_name(patch_mask))
            check_broadcasts("patch_mask", tuple(patch_mask.shape), (*batch, config.num_patches))
            x = torch.where((patch_mask != 0)[..., None], self.mask_param, x)
        if config.class_token:
            first = self.class_param.expand(*batch, 1, config.d_model)
            x = torch.cat([first, x], -2)  # (..., T, D)
        x = x + self.position_embed.weight
        if config.norm is not None:
            x = self.embed_norm(x)
        rate = config.dropout if self.training else 0.0
        return functional.apply_dropout(x, rate)
