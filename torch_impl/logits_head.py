"""The head that makes logits of a decoder's output.

T positions   D model width   V vocabulary   E width of the token embedding
"""

import torch
from torch import Tensor, nn

from diptych.spec import LogitsHeadConfig
from diptych.spec.checks.sizes import check_given, check_width

from .embedding import Embedding
from .linear import linear
from .module import Module, config_of


class LogitsHead(Module):
    """Vocabulary logits at every position: ``softcap(scale * (x table^T + bias))``.

    The table is the token embedding (tied, Press, Wolf 2017) or the head's own; ``softcap(l) =
    softcap tanh(l / softcap)`` (Gemma 2, 2024).

    Args:
        d_model: Width D of the hidden states.
        vocab_size: Number V of tokens.
        tied: Whether the table is the token embedding, given in the call.
        bias: Whether a bias is added.
        scale: Factor on the logits.
        softcap: Bound of the logits' magnitude; None means no bound.
        embed_dim: Width E of the token embedding of a tied head, to which hidden states are
            projected; None means D.

    Raises:
        ValueError: If a number is refused.
    """

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        *,
        tied: bool = True,
        bias: bool = False,
        scale: float = 1.0,
        softcap: float | None = None,
        embed_dim: int | None = None,
    ):
        super().__init__()
        self.config = config_of(LogitsHeadConfig, locals())
        if embed_dim is not None:
            self.embed_proj = linear(d_model, embed_dim, bias=False)
        if not tied:
            self.vocab_proj = linear(d_model, vocab_size, bias=bias)
        elif bias:
            self.vocab_bias_param = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, x: Tensor, embedding: Embedding | None = None) -> Tensor:
        """Score every token at every position.

        Args:
            x: Hidden states (..., T, D).
            embedding: The token embedding, needed exactly by a tied head.

        Returns:
            Logits (..., T, V).

        Raises:
            ValueError: If the last axis is not D, or the embedding is missing or too much.
        """
        config = self.config
        check_width(tuple(x.shape), config.d_model)
        check_given("embedding", embedding is not None, "tied", config.tied)
        if embedding is None:
            logits = self.vocab_proj(x)  # (..., T, V)
        else:
            logits = embedding.attend(x if config.embed_dim is None else self.embed_proj(x))
            logits = logits + self.vocab_bias_param if config.bias else logits
        logits = logits if config.scale == 1.0 else config.scale * logits
        if config.softcap is None:
            return logits
        return config.softcap * torch.tanh(logits / config.softcap)
