"""What one transformer layer is."""

from dataclasses import dataclass
from typing import ClassVar

from .attention import AttentionConfig
from .checks import check_above_zero, check_choice, check_rate
from .config import Config, Leaves, under
from .feed_forward import FeedForwardConfig
from .norm import LayerNormConfig

NORM_PLACEMENTS = ("post", "pre")


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
        eps: Of both layer norms.
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
        check_rate(dropout=self.dropout)
        check_choice(NORM_PLACEMENTS, norm_placement=self.norm_placement)
        check_above_zero(eps=self.eps)
        self.attention, self.feed_forward  # built here so that they refuse what they refuse

    @property
    def attention(self) -> AttentionConfig:
        """Return the config of the attention."""
        return AttentionConfig(
            d_model=self.d_model,
            num_heads=self.num_heads,
            attention_dropout=self.attention_dropout,
        )

    @property
    def feed_forward(self) -> FeedForwardConfig:
        """Return the config of the feed-forward network."""
        return FeedForwardConfig(d_model=self.d_model, d_ff=self.d_ff, activation=self.activation)

    @property
    def norm(self) -> LayerNormConfig:
        """Return the config of either norm."""
        return LayerNormConfig(d_model=self.d_model, eps=self.eps)

    def leaves(self) -> Leaves:
        return (
            under("attention", self.attention.leaves())
            | under("attention_norm", self.norm.leaves())
            | under("feed_forward", self.feed_forward.leaves())
            | under("feed_forward_norm", self.norm.leaves())
        )
