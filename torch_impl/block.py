"""One transformer layer.

T query positions   S key positions (here S = T)   D model width   N heads
"""

from torch import Tensor

from diptych.spec import TransformerEncoderLayerConfig

from . import functional
from .attention import MultiHeadAttention
from .feed_forward import FeedForward
from .module import Module
from .norm import LayerNorm


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network, each a residual branch with a layer norm.

    Post-norm, ``norm(x + dropout(branch(x)))``, as Vaswani et al. 2017; or pre-norm,
    ``x + dropout(branch(norm(x)))``, as Xiong et al. 2020.

    Args:
        d_model: Width D.
        num_heads: Number N of heads, a divisor of D.
        d_ff: Hidden width of the feed-forward network.
        dropout: Rate on both residual branches.
        activation: Of the feed-forward network.
        norm_placement: "post" or "pre".
        eps: Of both layer norms.
        attention_dropout: Rate on the attention weights.

    Raises:
        ValueError: If a size, a rate, eps or a name is refused.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int = 2048,
        dropout: float = 0.1,
        *,
        activation: str = "relu",
        norm_placement: str = "post",
        eps: float = 1e-5,
        attention_dropout: float = 0.0,
    ):
        super().__init__()
        self.config = config = TransformerEncoderLayerConfig(
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm_placement=norm_placement,
            eps=eps,
            attention_dropout=attention_dropout,
        )
        self.attention = MultiHeadAttention.from_config(config.attention)
        self.attention_norm = LayerNorm.from_config(config.norm)
        self.feed_forward = FeedForward.from_config(config.feed_forward)
        self.feed_forward_norm = LayerNorm.from_config(config.norm)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        bias: Tensor | None = None,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Let every position attend, then apply the feed-forward network to each.

        Args:
            x: Input (..., T, D).
            mask: True or not 0 where a query may attend to a key: (T, S), per sample (..., T, S)
                or per head (..., N, T, S).
            key_mask: True or not 0 where a key may be attended to: (..., S).
            bias: Added to the scores, shaped like ``mask``.
            need_weights: Whether the attention weights are returned too.

        Returns:
            Output (..., T, D), in the dtype of ``x``; with ``need_weights`` a pair of it and the
            weights (..., N, T, S).

        Raises:
            ValueError: If a mask or the bias does not fit.
            TypeError: If a mask is floating.
        """
        is_pre = self.config.norm_placement == "pre"
        rate = self.config.dropout if self.training else 0.0

        query = self.attention_norm(x) if is_pre else x
        attended, weights = self.attention(
            query, query, query, mask, key_mask=key_mask, bias=bias, need_weights=need_weights
        )
        x = x + functional.apply_dropout(attended, rate)
        x = x if is_pre else self.attention_norm(x)

        hidden = self.feed_forward(self.feed_forward_norm(x) if is_pre else x)
        x = x + functional.apply_dropout(hidden, rate)
        x = x if is_pre else self.feed_forward_norm(x)
        return x if weights is None else (x, weights)
