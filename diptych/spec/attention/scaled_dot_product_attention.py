"""What scaled dot-product attention is: how scores are made, and attention without projections."""

from dataclasses import dataclass
from typing import ClassVar

from ..checks.attention import window_sides
from ..checks.sizes import check_above_zero, check_boolean, check_kind, check_positive, check_rate
from ..config import Config


@dataclass(frozen=True, kw_only=True)
class ScoreConfig(Config):
    """How scores are made from queries and keys, whatever projects them.

    Attributes:
        scale: Factor on the products; None means 1 / sqrt(head width).
        softcap: Scores become ``softcap * tanh(score / softcap)``; None means no cap.
        window: Visible keys (left, right) of a query's own; an int w means (w - 1, 0), with causal.
        is_causal: Whether query i sees keys 0 .. i + offset only.
        sinks: Whether every head has a learnt logit more, which no key and no value belong to.

    Raises:
        ValueError: If a number is not above 0 and finite, or the window is refused.
    """

    scale: float | None = None
    softcap: float | None = None
    window: int | tuple[int, int] | None = None
    is_causal: bool = False
    sinks: bool = False

    def __post_init__(self):
        check_boolean(is_causal=self.is_causal, sinks=self.sinks)
        if self.scale is not None:
            check_above_zero(scale=self.scale)
        if self.softcap is not None:
            check_above_zero(softcap=self.softcap)
        if self.window is not None:
            window_sides(self.window, self.is_causal)


@dataclass(frozen=True, kw_only=True)
class ScaledDotProductAttentionConfig(Config):
    """Attention without projections.

    Attributes:
        d_k: Width of queries and keys.
        attention_dropout: Rate on the weights.
        score: How scores are made; its scale defaults to 1 / sqrt(d_k).
    """

    component: ClassVar[str] = "ScaledDotProductAttention"
    d_k: int
    attention_dropout: float = 0.0
    score: ScoreConfig = ScoreConfig()

    def __post_init__(self):
        check_positive(d_k=self.d_k)
        check_rate(attention_dropout=self.attention_dropout)
        check_kind(ScoreConfig, score=self.score)
        if self.score.sinks:
            raise ValueError("score.sinks=True needs heads: MultiHeadAttention has them")
