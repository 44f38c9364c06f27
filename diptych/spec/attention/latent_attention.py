"""What multi-head latent attention is (DeepSeek-V2, DeepSeek-AI 2024, section 2.1)."""

from dataclasses import dataclass
from typing import ClassVar

from ..checks.sizes import check_boolean, check_kind, check_positive, check_rate
from ..config import Config, Leaves, linear_leaves, under
from ..norm import NormConfig
from ..rotary import RotaryConfig
from .scaled_dot_product_attention import ScoreConfig


@dataclass(frozen=True, kw_only=True)
class LatentAttentionConfig(Config):
    """Attention whose keys and values are made from one narrow latent vector per position.

    Attributes:
        d_model: Width D of the input and the output.
        num_heads: Number N of heads.
        kv_rank: Width of the latent of keys and values.
        nope_dim: Width of the part of a query and key that is not rotated.
        rope_dim: Width of the part that is, even; the rotated key is one for all heads.
        v_dim: Width of a head's values.
        q_rank: Width of the latent of queries; None projects queries at once.
        qkv_bias: Whether the projections down to the latents carry a bias.
        out_bias: Whether the output projection carries a bias.
        attention_dropout: Rate on the weights.
        norm: Of the latents.
        score: How scores are made; its scale defaults to 1 / sqrt(nope_dim + rope_dim).
        rotary: How the rotated parts are rotated.

    Raises:
        ValueError: If a size is below 1 or the rotated width is odd.
    """

    component: ClassVar[str] = "LatentAttention"
    d_model: int
    num_heads: int
    kv_rank: int
    nope_dim: int
    rope_dim: int
    v_dim: int
    q_rank: int | None = None
    qkv_bias: bool = False
    out_bias: bool = False
    attention_dropout: float = 0.0
    norm: NormConfig = NormConfig(kind="rms")
    score: ScoreConfig = ScoreConfig()
    rotary: RotaryConfig = RotaryConfig(interleaved=True)

    def __post_init__(self):
        check_boolean(qkv_bias=self.qkv_bias, out_bias=self.out_bias)
        check_positive(
            d_model=self.d_model,
            num_heads=self.num_heads,
            kv_rank=self.kv_rank,
            nope_dim=self.nope_dim,
            rope_dim=self.rope_dim,
            v_dim=self.v_dim,
        )
        if self.q_rank is not None:
            check_positive(q_rank=self.q_rank)
        check_rate(attention_dropout=self.attention_dropout)
        check_kind(NormConfig, norm=self.norm)
        check_kind(ScoreConfig, score=self.score)
        check_kind(RotaryConfig, rotary=self.rotary)
        self.rotary.width(self.rope_dim)
        if self.score.sinks:
            raise ValueError("score.sinks=True: latent attention has no sinks")

    @property
    def cache_rows(self) -> tuple[tuple[int, ...], ...]:
        """Return the shape of what a cache holds of one position: latent and rotated key."""
        return (self.kv_rank,), (self.rope_dim,)

    def leaves(self) -> Leaves:
        D, N, bias = self.d_model, self.num_heads, self.qkv_bias
        q_width = N * (self.nope_dim + self.rope_dim)
        if self.q_rank is None:
            leaves = under("q_proj", linear_leaves(D, q_width, bias=False))
        else:
            leaves = (
                under("q_down_proj", linear_leaves(D, self.q_rank, bias=bias))
                | under("q_norm", self.norm.of(self.q_rank).leaves())
                | under("q_up_proj", linear_leaves(self.q_rank, q_width, bias=False))
            )
        kv_width = N * (self.nope_dim + self.v_dim)
        return (
            leaves
            | under("kv_down_proj", linear_leaves(D, self.kv_rank + self.rope_dim, bias=bias))
            | under("kv_norm", self.norm.of(self.kv_rank).leaves())
            | under("kv_up_proj", linear_leaves(self.kv_rank, kv_width, bias=False))
            | under("out_proj", linear_leaves(N * self.v_dim, D, bias=self.out_bias))
        )
