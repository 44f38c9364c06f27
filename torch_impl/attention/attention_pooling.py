"""A sequence pooled to one vector by attention.

T positions   D model width   E width of the sequence
"""

import torch
from torch import Tensor, nn

from diptych.spec import AttentionConfig, AttentionPoolingConfig, FeedForwardConfig, NormConfig

from ..feed_forward import FeedForward
from ..module import Module, config_of
from ..norm import norm as new_norm
from .multi_head_attention import MultiHeadAttention


class AttentionPooling(Module):
    """One learnt query that reads a sequence, then a feed-forward network (Zhai et al. 2022).

    ``x = attention(query, sequence)``, ``pooled = x + feed_forward(norm(x))``.

    Args:
        attention: Config of the attention.
        feed_forward: Config of the network.
        norm: Which norm.

    Raises:
        ValueError: If widths differ.
        TypeError: If a part is of another kind.
    """

    def __init__(
        self,
        attention: AttentionConfig,
        feed_forward: FeedForwardConfig,
        *,
        norm: NormConfig = NormConfig(),
    ):
        super().__init__()
        self.config = config_of(AttentionPoolingConfig, locals())
        D = attention.d_model
        self.query_param = nn.Parameter(nn.init.normal_(torch.empty(D), std=0.02))
        self.attention = MultiHeadAttention.from_config(attention)
        self.feed_forward_norm = new_norm(norm, D)
        self.feed_forward = FeedForward.from_config(feed_forward)

    def forward(self, x: Tensor, *, key_mask: Tensor | None = None) -> Tensor:
        """Read a sequence.

        Args:
            x: Vectors (..., T, E).
            key_mask: True or not 0 at the positions that are read: (..., T).

        Returns:
            Pooled vectors (..., D), in the dtype of ``x``.

        Raises:
            ValueError: If a shape does not fit.
            TypeError: If the mask is floating.
        """
        D = self.query_param.shape[0]
        query = self.query_param.expand(*x.shape[:-2], 1, D)  # (..., 1, D)
        attended = self.attention(query, x, key_mask=key_mask, need_weights=False)
        pooled = attended[0][..., 0, :]  # (..., D)
        return pooled + self.feed_forward(self.feed_forward_norm(pooled))
