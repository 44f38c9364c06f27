"""Scaled dot-product attention without projections.

B batch   T query positions   S key positions   N query heads   K key/value heads
H head width
"""

from jax import Array

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

    def __call__(
        self,
        query: Array,
        key: Array,
        value: Array,
        mask: Array | None = None,
        *,
        key_mask: Array | None = None,
        bias: Array | None = None,
        offset: int | Array = 0,
        segment_ids: Array | tuple[Array, Array] | None = None,
        need_weights: bool = True,
        rng_key: Array | None = None,
    ) -> tuple[Array, Array | None]:
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
            rng_key: Key of the dropout's draw. In training, an attention dropout above 0 without
                it is a ValueError.

        Returns:
            Output (..., T, V) and weights (..., T, S), or None.

        Raises:
            ValueError: If the query's width is not ``d_k``, or another shape does not fit.
            TypeError: If a dtype does not fit.
        """
        check_width(query.shape, self.config.d_k)
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
            rng_key=rng_key,
        )
