"""What the layers of the original transformer are (Vaswani et al. 2017)."""

from dataclasses import dataclass, replace
from typing import ClassVar

from .attention.multi_head_attention import AttentionConfig
from .attention.scaled_dot_product_attention import ScoreConfig
from .block import BlockConfig
from .checks.sizes import check_above_zero, check_choice
from .config import Config, Leaves
from .feed_forward import FeedForwardConfig
from .norm import NormConfig

LAYER_NORM_PLACEMENTS = ("post", "pre")


@dataclass(frozen=True, kw_only=True)
class TransformerEncoderLayerConfig(Config):
    """Self-attention and a feed-forward network, each with a residual branch and a layer norm.

    Attributes:
        d_model: Width.
        num_heads: Number of heads.
        d_ff: Hidden width of the feed-forward network.
        dropout: Rate on both residual branches.
        activation: Of the feed-forward network.
        norm_placement: "post" (after the sum, as in the original) or "pre" (before the branch).
        eps: Of the layer norms.
        attention_dropout: Rate on the attention weights.
    """

    component: ClassVar[str] = "TransformerEncoderLayer"
    d_model: int
    num_heads: int
    d_ff: int = 2048
    dropout: float = 0.1
    activation: str = "relu"
    norm_placement: str = "post"
    eps: float = 1e-5
    attention_dropout: float = 0.0

    def __post_init__(self):
        check_choice(LAYER_NORM_PLACEMENTS, norm_placement=self.norm_placement)
        check_above_zero(eps=self.eps)
        self.block  # built here so that it refuses what it refuses

    @property
    def block(self) -> BlockConfig:
        """Return the config of the block that this layer is."""
        return BlockConfig(
            attention=self.attention,
            feed_forward=FeedForwardConfig(
                d_model=self.d_model, d_ff=self.d_ff, activation=self.activation
            ),
            norm=NormConfig(eps=self.eps),
            norm_placement=self.norm_placement,
            dropout=self.dropout,
        )

    @property
    def attention(self) -> AttentionConfig:
        """Return the config of the self-attention."""
        return AttentionConfig(
            d_model=self.d_model,
            num_heads=self.num_heads,
            attention_dropout=self.attention_dropout,
        )

    def leaves(self) -> Leaves:
        return self.block.leaves()


@dataclass(frozen=True, kw_only=True)
class TransformerDecoderLayerConfig(TransformerEncoderLayerConfig):
    """Causal self-attention, attention to a memory, and a feed-forward network.

    Attributes:
        d_model: Width.
        num_heads: Number of heads of both attentions.
        d_ff: Hidden width of the feed-forward network.
        dropout: Rate on the residual branches.
        activation: Of the feed-forward network.
        norm_placement: "post" (after the sum, as in the original) or "pre" (before the branch).
        eps: Of the layer norms.
        attention_dropout: Rate on the attention weights.
    """

    component: ClassVar[str] = "TransformerDecoderLayer"

    @property
    def block(self) -> BlockConfig:
        """Return the config of the block that this layer is."""
        return replace(
            super().block,
            attention=replace(self.attention, score=ScoreConfig(is_causal=True)),
            cross_attention=self.attention,
        )
