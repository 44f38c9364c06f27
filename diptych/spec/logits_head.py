"""What the head that makes logits of a decoder's output is."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_above_zero, check_boolean, check_positive
from .config import Config, Leaf, Leaves, linear_leaves, under


@dataclass(frozen=True, kw_only=True)
class LogitsHeadConfig(Config):
    """Vocabulary logits at every position: ``softcap(scale * (x table^T + bias))``.

    Attributes:
        d_model: Width of the hidden states.
        vocab_size: Number of tokens.
        tied: Whether the table is the token embedding, given in the call, instead of an own one.
        bias: Whether a bias is added.
        scale: Factor on the logits.
        softcap: Logits become ``softcap * tanh(logit / softcap)``; None means no cap.
        embed_dim: Width of the token embedding of a tied head, to which hidden states are
            projected; None means d_model.

    Raises:
        ValueError: If a number is refused.
    """

    component: ClassVar[str] = "LogitsHead"
    d_model: int
    vocab_size: int
    tied: bool = True
    bias: bool = False
    scale: float = 1.0
    softcap: float | None = None
    embed_dim: int | None = None

    def __post_init__(self):
        check_boolean(tied=self.tied, bias=self.bias)
        check_positive(d_model=self.d_model, vocab_size=self.vocab_size)
        check_above_zero(scale=self.scale)
        if self.softcap is not None:
            check_above_zero(softcap=self.softcap)
        if self.embed_dim is not None:
            check_positive(embed_dim=self.embed_dim)
            if not self.tied:
                raise ValueError(f"embed_dim={self.embed_dim} is of a tied head only")

    def leaves(self) -> Leaves:
        leaves: Leaves = {}
        if self.embed_dim is not None:
            leaves |= under("embed_proj", linear_leaves(self.d_model, self.embed_dim, bias=False))
        if not self.tied:
            leaves |= under(
                "vocab_proj", linear_leaves(self.d_model, self.vocab_size, bias=self.bias)
            )
        elif self.bias:
            leaves["vocab_bias_param"] = Leaf((self.vocab_size,), "param")
        return leaves
