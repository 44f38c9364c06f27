"""BERT's task heads (Devlin et al. 2019, section 3 and 4).

T positions   D model width   V vocabulary   L labels
"""

import torch
from torch import Tensor, nn

from diptych.spec import (
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
)
from diptych.spec.checks.sizes import check_width

from . import functional
from .embedding import Embedding
from .linear import linear
from .module import Module, config_of
from .norm import LayerNorm


class NextSentenceHead(Module):
    """Two logits from the pooled vector: the second sentence follows, or does not.

    Args:
        d_model: Width D of the pooled vector.

    Raises:
        ValueError: If the width is below 1.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.config = NextSentenceHeadConfig(d_model=d_model)
        self.classifier_proj = linear(d_model, 2)

    def forward(self, pooled: Tensor) -> Tensor:
        """Score both answers.

        Args:
            pooled: Vector of a sequence (..., D).

        Returns:
            Logits (..., 2).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(tuple(pooled.shape), self.config.d_model)
        return self.classifier_proj(pooled)


class SequenceClassificationHead(Module):
    """Label logits from the pooled vector.

    Args:
        d_model: Width D of the pooled vector.
        num_labels: Number L of logits.
        dropout: Rate on the pooled vector.

    Raises:
        ValueError: If a size or the rate is refused.
    """

    def __init__(self, d_model: int, num_labels: int, *, dropout: float = 0.1):
        super().__init__()
        self.config = config_of(SequenceClassificationHeadConfig, locals())
        self.classifier_proj = linear(d_model, num_labels)

    def forward(self, pooled: Tensor) -> Tensor:
        """Score every label.

        Args:
            pooled: Vector of a sequence (..., D).

        Returns:
            Logits (..., L).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(tuple(pooled.shape), self.config.d_model)
        rate = self.config.dropout if self.training else 0.0
        return self.classifier_proj(functional.apply_dropout(pooled, rate))


class TokenClassificationHead(Module):
    """Label logits at every position.

    Args:
        d_model: Width D of the hidden states.
        num_labels: Number L of logits.
        dropout: Rate on the hidden states.

    Raises:
        ValueError: If a size or the rate is refused.
    """

    def __init__(self, d_model: int, num_labels: int, *, dropout: float = 0.1):
        super().__init__()
        self.config = config_of(TokenClassificationHeadConfig, locals())
        self.classifier_proj = linear(d_model, num_labels)

    def forward(self, x: Tensor) -> Tensor:
        """Score every label at every position.

        Args:
            x: Hidden states (..., T, D).

        Returns:
            Logits (..., T, L).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(tuple(x.shape), self.config.d_model)
        rate = self.config.dropout if self.training else 0.0
        return self.classifier_proj(functional.apply_dropout(x, rate))


class QuestionAnsweringHead(Module):
    """A start and an end logit at every position.

    Args:
        d_model: Width D of the hidden states.

    Raises:
        ValueError: If the width is below 1.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.config = QuestionAnsweringHeadConfig(d_model=d_model)
        self.span_proj = linear(d_model, 2)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Score every position as the first and as the last of the answer.

        Args:
            x: Hidden states (..., T, D).

        Returns:
            Start logits (..., T) and end logits (..., T).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(tuple(x.shape), self.config.d_model)
        logits = self.span_proj(x)  # (..., T, 2)
        return logits[..., 0], logits[..., 1]


class MaskedLMHead(Module):
    """Vocabulary logits at every position, through the token embedding (tied).

    Args:
        d_model: Width D.
        vocab_size: Number V of tokens.
        activation: Between the transform and its norm.
        eps: Of the norm.
        embed_dim: Width E of the token embedding; None means D.
        transform_bias: Whether the transform's linear map carries a bias.
        norm_bias: Whether its norm does.

    Raises:
        ValueError: If a size, eps or the activation is refused.
    """

    def __init__(
        self,
        d_model: int,
        vocab_size: int,
        *,
        activation: str = "gelu",
        eps: float = 1e-5,
        embed_dim: int | None = None,
        transform_bias: bool = True,
        norm_bias: bool = True,
    ):
        super().__init__()
        self.config = config_of(MaskedLMHeadConfig, locals())
        width = self.config.width
        self.transform_proj = linear(d_model, width, bias=transform_bias)
        self.transform_norm = LayerNorm(width, eps=eps, bias=norm_bias)
        self.vocab_bias_param = nn.Parameter(torch.zeros(vocab_size))

    def forward(self, x: Tensor, embedding: Embedding) -> Tensor:
        """Score every token at every position.

        Args:
            x: Hidden states (..., T, D).
            embedding: The token embedding, whose rows are the vectors of the tokens.

        Returns:
            Logits (..., T, V).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(tuple(x.shape), self.config.d_model)
        x = functional.activate(self.transform_proj(x), self.config.activation)  # (..., T, E)
        return embedding.attend(self.transform_norm(x)) + self.vocab_bias_param  # (..., T, V)
