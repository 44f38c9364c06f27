"""What multi-head attention is."""

from dataclasses import dataclass
from typing import ClassVar

from ..checks.sizes import (
    check_boolean,
    check_choice,
    check_divides,
    check_flags,
    check_kind,
    check_positive,
    check_rate,
)
from ..config import Config, Leaf, Leaves, linear_leaves, under
from ..norm import NormConfig
from ..position_bias import AlibiConfig, PositionBiasConfig, RelativeBiasConfig
from ..rotary import RotaryConfig
from .scaled_dot_product_attention import ScoreConfig


@dataclass(frozen=True, kw_only=True)
class QKNormConfig(Config):
    """Norms of queries and keys, before they are rotated (Henry et al. 2020).

    Attributes:
        norm: Which norm.
        over: "head" (one of the head's width for all heads) or "width" (over all heads at once).
    """

    norm: NormConfig = NormConfig(kind="rms")
    over: str = "head"

    def __post_init__(self):
        check_kind(NormConfig, norm=self.norm)
        check_choice(("head", "width"), over=self.over)

    def width(self, num_heads: int, head_dim: int) -> int:
        """Return the width of the norm of so many heads."""
        return head_dim if self.over == "head" else num_heads * head_dim


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(Config):
    """Multi-head attention: project, attend, project back.

    Attributes:
        d_model: Width D of the queries' input and the output.
        num_heads: Number N of query heads.
        num_kv_heads: Number K of key/value heads, a divisor of N; None means N.
        head_dim: Width H of one head; None means d_model / num_heads.
        kv_dim: Width of the keys' and values' input; None means d_model.
        qkv_bias: Whether the three input projections carry a bias, or which of (q, k, v) do.
        out_bias: Whether the output projection carries a bias.
        attention_dropout: Rate on the weights.
        score: How scores are made.
        rotary: How queries and keys are rotated by their positions, if they are.
        qk_norm: Norms of queries and keys, if they have any.
        position_bias: What is added to the scores for the distance of a key, if anything.

    Raises:
        ValueError: If a size is below 1, or one that must divide another does not.
    """

    component: ClassVar[str] = "MultiHeadAttention"
    d_model: int
    num_heads: int
    num_kv_heads: int | None = None
    head_dim: int | None = None
    kv_dim: int | None = None
    qkv_bias: bool | tuple[bool, bool, bool] = True
    out_bias: bool = True
    attention_dropout: float = 0.0
    score: ScoreConfig = ScoreConfig()
    rotary: RotaryConfig | None = None
    qk_norm: QKNormConfig | None = None
    position_bias: RelativeBiasConfig | AlibiConfig | None = None

    def __post_init__(self):
        check_boolean(out_bias=self.out_bias)
        check_positive(d_model=self.d_model, num_heads=self.num_heads)
        if self.head_dim is None:
            check_divides(num_heads=self.num_heads, d_model=self.d_model)
        else:
            check_positive(head_dim=self.head_dim)
        if self.num_kv_heads is not None:
            check_divides(num_kv_heads=self.num_kv_heads, num_heads=self.num_heads)
        if self.kv_dim is not None:
            check_positive(kv_dim=self.kv_dim)
        check_flags(3, qkv_bias=self.qkv_bias)
        check_rate(attention_dropout=self.attention_dropout)
        check_kind(ScoreConfig, score=self.score)
        check_kind(RotaryConfig | None, rotary=self.rotary)
        check_kind(QKNormConfig | None, qk_norm=self.qk_norm)
        check_kind(PositionBiasConfig | None, position_bias=self.position_bias)
        if self.rotary is not None:
            self.rotary.width(self.sizes[2])

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Return (N, K, H): query heads, key/value heads, head width."""
        head_dim = self.d_model // self.num_heads if self.head_dim is None else self.head_dim
        return self.num_heads, self.num_kv_heads or self.num_heads, head_dim

    @property
    def key_width(self) -> int:
        """Return the width of the keys' and values' input."""
        return self.kv_dim or self.d_model

    @property
    def cache_rows(self) -> tuple[tuple[int, ...], ...]:
        """Return the shape of what a cache holds of one position: its key and its value."""
        _, K, H = self.sizes
        return (K, H), (K, H)

    @property
    def biases(self) -> tuple[bool, bool, bool]:
        """Return whether the projections of queries, keys and values carry a bias."""
        flags = self.qkv_bias
        return (flags, flags, flags) if isinstance(flags, bool) else flags

    def leaves(self) -> Leaves:
        N, K, H = self.sizes
        q_bias, k_bias, v_bias = self.biases
        leaves = (
            under("q_proj", linear_leaves(self.d_model, N * H, bias=q_bias))
            | under("k_proj", linear_leaves(self.key_width, K * H, bias=k_bias))
            | under("v_proj", linear_leaves(self.key_width, K * H, bias=v_bias))
            | under("out_proj", linear_leaves(N * H, self.d_model, bias=self.out_bias))
        )
        if self.score.sinks:
            leaves["sinks_param"] = Leaf((N,), "param")
        if self.qk_norm is not None:
            leaves |= under("q_norm", self.qk_norm.norm.of(self.qk_norm.width(N, H)).leaves())
            leaves |= under("k_norm", self.qk_norm.norm.of(self.qk_norm.width(K, H)).leaves())
        if isinstance(self.position_bias, RelativeBiasConfig):
            leaves |= under("position_bias", self.position_bias.of(N).leaves())
        return leaves
