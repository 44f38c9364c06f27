"""Scaled dot-product attention without projections.

B batch   T query positions   S key positions   N query heads   K key/value heads
H head width
"""

from torch import Tensor

from diptych.spec import ScaledDotProductAttentionConfig, ScoreConfig
from diptych.spec.checks.sizes import check_width

from .. import functional
from ..module import Module, config_of


class ScaledDotProductAttention(Module):
    """Attention without projections: ``softmax(query key^T / sqrt(d_k)) value``.

    Args:
        d_k: Width H of queries and keys.
        attention_dropout: Rate on the weights in training.
        score: How scores are made.

    Raises:
        ValueError: If ``d_k`` is below 1 or the rate is outside [0, 1).
    """

    def __init__(
        self,
        d_k: int,
        *,
        attention_dropout: float = 0.0,
        score: ScoreConfig = ScoreConfig(),
    ):
        super().__init__()
        self.config = config_of(ScaledDotProductAttentionConfig, locals())

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
        bias: Tensor | None = None,
        offset: int | Tensor = 0,
        segment_ids: Tensor | tuple[Tensor, Tensor] | None = None,
        need_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Average the values by the softmax of query-key products.

        Args:
            query: (..., T, d_k), at rank 4 and above (..., N, T, d_k).
            key: (..., S, d_k), or (..., K, S, d_k).
            value: (..., S, V), or (..., K, S, V).
            mask: As in ``functional.scaled_dot_product_attention``, like all that follow; true or
                not 0 where a query may attend.
            key_mask: (B, S), the keys that may be attended to.
            bias: Added to the scores; -inf hides.
            offset: Position of the first query among the keys.
            segment_ids: A query sees the keys of its own segment.
            need_weights: Whether to return the weights.

        Returns:
            Output (..., T, V) and weights (..., T, S), or None.

        Raises:
            ValueError: If the query's width is not ``d_k``, or another shape does not fit.
            TypeError: If a dtype does not fit.
        """
        check_width(tuple(query.shape), self.config.d_k)
        score = self.config.score
        return functional.scaled_dot_product_attention(
            query,
            key,
            value,
            mask=mask,
            key_mask=key_mask,
            bias=bias,
            is_causal=score.is_causal,
            offset=offset,
            window=score.window,
            segment_ids=segment_ids,
            scale=score.scale,
            softcap=score.softcap,
            dropout=self.config.attention_dropout if self.training else 0.0,
            need_weights=need_weights,
        )
