"""What the input of an encoder of images is (Dosovitskiy et al. 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_boolean, check_divides, check_kind, check_positive, check_rate
from .config import Config, Leaf, Leaves, under
from .embedding import EmbeddingConfig
from .norm import NormConfig


@dataclass(frozen=True, kw_only=True)
class PatchEmbeddingConfig(Config):
    """Images cut into patches, each mapped to a vector, with tokens and positions added.

    Attributes:
        image_size: Height and width of the images, or one number for both.
        patch_size: Height and width of a patch, dividing the image's.
        d_model: Width D of the vectors.
        num_channels: Number of channels of the images.
        patch_bias: Whether the map carries a bias.
        class_token: Whether a learnt vector stands before the patches.
        mask_token: Whether a learnt vector can replace patches.
        norm: Of the result; None leaves it out.
        dropout: Rate on the result.

    Raises:
        ValueError: If a size or rate is refused.
    """

    component: ClassVar[str] = "PatchEmbedding"
    image_size: int | tuple[int, int]
    patch_size: int
    d_model: int
    num_channels: int = 3
    patch_bias: bool = True
    class_token: bool = True
    mask_token: bool = False
    norm: NormConfig | None = None
    dropout: float = 0.0

    def __post_init__(self):
        check_boolean(
            patch_bias=self.patch_bias, class_token=self.class_token, mask_token=self.mask_token
        )
        check_positive(
            patch_size=self.patch_size, d_model=self.d_model, num_channels=self.num_channels
        )
        if len(self.sides) != 2:
            raise ValueError(f"image_size={self.image_size!r} must be one size or (height, width)")
        for side in self.sides:
            check_divides(patch_size=self.patch_size, image_size=side)
        check_kind(NormConfig | None, norm=self.norm)
        check_rate(dropout=self.dropout)

    @property
    def sides(self) -> tuple[int, int]:
        """Return height and width of the images."""
        size = self.image_size
        return size if isinstance(size, tuple) else (size, size)

    @property
    def num_patches(self) -> int:
        """Return the number of patches."""
        height, width = self.sides
        return (height // self.patch_size) * (width // self.patch_size)

    @property
    def length(self) -> int:
        """Return the length of the sequence, class token included."""
        return self.num_patches + self.class_token

    def leaves(self) -> Leaves:
        D, P = self.d_model, self.patch_size
        leaves = {"patch_conv.weight": Leaf((D, self.num_channels, P, P), "conv")}
        if self.patch_bias:
            leaves["patch_conv.bias"] = Leaf((D,), "conv")
        if self.class_token:
            leaves["class_param"] = Leaf((D,), "param")
        if self.mask_token:
            leaves["mask_param"] = Leaf((D,), "param")
        positions = EmbeddingConfig(num_embeddings=self.length, d_model=D)
        leaves |= under("position_embed", positions.leaves())
        if self.norm is not None:
            leaves |= under("embed_norm", self.norm.of(D).leaves())
        return leaves
