"""What an encoder of images is (Dosovitskiy et al. 2021)."""

from dataclasses import dataclass
from typing import ClassVar

from .attention import AttentionConfig
from .block import BlockConfig, TransformerEncoderLayerConfig
from .checks.sizes import (
    check_boolean,
    check_choice,
    check_divides,
    check_equal,
    check_kind,
    check_positive,
    check_rate,
)
from .config import Config, Leaf, Leaves, linear_leaves, under
from .embedding import EmbeddingConfig
from .feed_forward import FeedForwardConfig
from .norm import NormConfig
from .stack import StackConfig, layer_leaves

POOLINGS = ("class", "class_mean", "tanh", "attention")


@dataclass(frozen=True, kw_only=True)
class AttentionPoolingConfig(Config):
    """One learnt query that reads a sequence, then a feed-forward network (Zhai et al. 2022).

    Attributes:
        attention: Config of the attention.
        feed_forward: Config of the network, ``x + feed_forward(norm(x))``.
        norm: Which norm.

    Raises:
        ValueError: If widths differ.
    """

    component: ClassVar[str] = "AttentionPooling"
    attention: AttentionConfig
    feed_forward: FeedForwardConfig
    norm: NormConfig = NormConfig()

    def __post_init__(self):
        check_kind(AttentionConfig, attention=self.attention)
        check_kind(FeedForwardConfig, feed_forward=self.feed_forward)
        check_kind(NormConfig, norm=self.norm)
        check_equal(
            "feed_forward.d_model",
            self.feed_forward.d_model,
            "attention.d_model",
            self.attention.d_model,
        )

    def leaves(self) -> Leaves:
        D = self.attention.d_model
        return (
            {"query_param": Leaf((D,), "param")}
            | under("attention", self.attention.leaves())
            | under("feed_forward_norm", self.norm.of(D).leaves())
            | under("feed_forward", self.feed_forward.leaves())
        )


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


@dataclass(frozen=True, kw_only=True)
class VisionEncoderConfig(StackConfig):
    """Patches, N layers, a final norm and a pooled vector, the last two optional.

    Attributes:
        embedding: Config of the patches.
        layer: Config of every layer, or of several that take turns.
        num_layers: Number of layers.
        final_norm: Norm of the last layer's output; None leaves it out.
        pooling: "class" (the output at the class token), "class_mean" (it, then the mean of the
            patches), "tanh" (a linear map and tanh of it), "attention" (a learnt query reads the
            output) or None.
        attention_pooling: Config of the learnt query, with pooling="attention" only.

    Raises:
        ValueError: If a size or name is refused, widths differ, or the class token is missing.
        TypeError: If a part is of another kind.
    """

    component: ClassVar[str] = "VisionEncoder"
    embedding: PatchEmbeddingConfig
    layer: TransformerEncoderLayerConfig | BlockConfig | tuple[BlockConfig, ...]
    num_layers: int
    final_norm: NormConfig | None = NormConfig()
    pooling: str | None = None
    attention_pooling: AttentionPoolingConfig | None = None

    def __post_init__(self):
        check_kind(PatchEmbeddingConfig, embedding=self.embedding)
        super().__post_init__()
        check_kind(NormConfig | None, final_norm=self.final_norm)
        check_equal("embedding.d_model", self.embedding.d_model, "layer.d_model", self.d_model)
        check_kind(AttentionPoolingConfig | None, attention_pooling=self.attention_pooling)
        if self.pooling is not None:
            check_choice(POOLINGS, pooling=self.pooling)
        if self.pooling in POOLINGS[:-1] and not self.embedding.class_token:
            raise ValueError(f"pooling={self.pooling!r} needs embedding.class_token=True")
        if (self.pooling == "attention") != (self.attention_pooling is not None):
            raise ValueError("pooling='attention' and attention_pooling go together")
        if self.attention_pooling is not None:
            check_equal(
                "attention_pooling.attention.kv_dim",
                self.attention_pooling.attention.key_width,
                "layer.d_model",
                self.d_model,
            )

    @property
    def pooled_dim(self) -> int | None:
        """Return the width of the pooled vector, None without one."""
        if self.attention_pooling is not None:
            return self.attention_pooling.attention.d_model
        widths = {None: None, "class_mean": 2 * self.d_model}
        return widths.get(self.pooling, self.d_model)

    def leaves(self) -> Leaves:
        D = self.d_model
        leaves = under("embedding", self.embedding.leaves()) | layer_leaves(self)
        if self.pooling == "tanh":
            leaves |= under("pooler_proj", linear_leaves(D, D))
        if self.attention_pooling is not None:
            leaves |= under("attention_pooling", self.attention_pooling.leaves())
        return leaves
