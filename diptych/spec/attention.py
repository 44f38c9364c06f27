"""What the attention components are, before any framework."""

from dataclasses import dataclass
from typing import ClassVar

from .attention_checks import window_sides
from .checks import check_above_zero, check_divides, check_kind, check_positive, check_rate
from .config import Config, Leaves, linear_leaves, under


@dataclass(frozen=True, kw_only=True)
class ScoreConfig(Config):
    """How scores are made from queries and keys, whatever projects them.

    Attributes:
        scale: Factor on the products; None means 1 / sqrt(head width).
        softcap: Scores become ``softcap * tanh(score / softcap)``; None means no cap.
        window: Visible keys (left, right) of a query's own; an int w means (w - 1, 0), with causal.
        is_causal: Whether query i sees keys 0 .. i + offset only.

    Raises:
        ValueError: If a number is not above 0 and finite, or the window is refused.
    """

    scale: float | None = None
    softcap: float | None = None
    window: int | tuple[int, int] | None = None
    is_causal: bool = False

    def __post_init__(self):
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


@dataclass(frozen=True, kw_only=True)
class HeadAttentionConfig(Config):
    """One causal attention head without an output projection.

    Attributes:
        emb_size: Width of the input.
        head_size: Width of queries, keys and values.
        max_seq_len: Longest sequence accepted.
    """

    component: ClassVar[str] = "HeadAttention"
    emb_size: int
    head_size: int
    max_seq_len: int

    def __post_init__(self):
        check_positive(
            emb_size=self.emb_size, head_size=self.head_size, max_seq_len=self.max_seq_len
        )

    def leaves(self) -> Leaves:
        head = linear_leaves(self.emb_size, self.head_size)
        return under("q_proj", head) | under("k_proj", head) | under("v_proj", head)


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(Config):
    """Multi-head attention: project, attend, project back.

    Attributes:
        d_model: Width D of the input and the output.
        num_heads: Number N of query heads.
        num_kv_heads: Number K of key/value heads, a divisor of N; None means N.
        head_dim: Width H of one head; None means d_model / num_heads.
        qkv_bias: Whether the three input projections carry a bias.
        out_bias: Whether the output projection carries a bias.
        attention_dropout: Rate on the weights.
        score: How scores are made.

    Raises:
        ValueError: If a size is below 1, or one that must divide another does not.
    """

    component: ClassVar[str] = "MultiHeadAttention"
    d_model: int
    num_heads: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    qkv_bias: bool = True
    out_bias: bool = True
    attention_dropout: float = 0.0
    score: ScoreConfig = ScoreConfig()

    def __post_init__(self):
        check_positive(d_model=self.d_model, num_heads=self.num_heads)
        if self.head_dim is None:
            check_divides(num_heads=self.num_heads, d_model=self.d_model)
        else:
            check_positive(head_dim=self.head_dim)
        if self.num_kv_heads is not None:
            check_divides(num_kv_heads=self.num_kv_heads, num_heads=self.num_heads)
        check_rate(attention_dropout=self.attention_dropout)
        check_kind(ScoreConfig, score=self.score)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return (N, K, H): query heads, key/value heads, head width."""
        head_dim = self.d_model // self.num_heads if self.head_dim is None else self.head_dim
        return self.num_heads, self.num_kv_heads or self.num_heads, head_dim

    def leaves(self) -> Leaves:
        N, K, H = self.sizes
        query = linear_leaves(self.d_model, N * H, bias=self.qkv_bias)
        key_value = linear_leaves(self.d_model, K * H, bias=self.qkv_bias)
        return (
            under("q_proj", query)
            | under("k_proj", key_value)
            | under("v_proj", key_value)
            | under("out_proj", linear_leaves(N * H, self.d_model, bias=self.out_bias))
        )
