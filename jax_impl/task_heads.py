"""BERT's task heads (Devlin et al. 2019, section 3 and 4).

T positions   D model width   V vocabulary   L labels
"""

from flax import nnx
from jax import Array
from jax import numpy as jnp

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
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If the width is below 1.
    """

    def __init__(self, d_model: int, *, rngs: nnx.Rngs):
        super().__init__()
        self.config = NextSentenceHeadConfig(d_model=d_model)
        self.classifier_proj = linear(d_model, 2, rngs=rngs)

    def __call__(self, pooled: Array) -> Array:
        """Score both answers.

        Args:
            pooled: Vector of a sequence (..., D).

        Returns:
            Logits (..., 2).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(pooled.shape, self.config.d_model)
        return self.classifier_proj(pooled)


class SequenceClassificationHead(Module):
    """Label logits from the pooled vector.

    Args:
        d_model: Width D of the pooled vector.
        num_labels: Number L of logits.
        dropout: Rate on the pooled vector.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size or the rate is refused.
    """

    def __init__(self, d_model: int, num_labels: int, *, dropout: float = 0.1, rngs: nnx.Rngs):
        super().__init__()
        self.config = config_of(SequenceClassificationHeadConfig, locals())
        self.classifier_proj = linear(d_model, num_labels, rngs=rngs)

    def __call__(self, pooled: Array, *, rng_key: Array | None = None) -> Array:
        """Score every label.

        Args:
            pooled: Vector of a sequence (..., D).
            rng_key: Needed in training with a dropout above 0, else a ValueError.

        Returns:
            Logits (..., L).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(pooled.shape, self.config.d_model)
        rate = self.config.dropout if self.training else 0.0
        return self.classifier_proj(functional.apply_dropout(pooled, rate, rng_key=rng_key))


class TokenClassificationHead(Module):
    """Label logits at every position.

    Args:
        d_model: Width D of the hidden states.
        num_labels: Number L of logits.
        dropout: Rate on the hidden states.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a size or the rate is refused.
    """

    def __init__(self, d_model: int, num_labels: int, *, dropout: float = 0.1, rngs: nnx.Rngs):
        super().__init__()
        self.config = config_of(TokenClassificationHeadConfig, locals())
        self.classifier_proj = linear(d_model, num_labels, rngs=rngs)

    def __call__(self, x: Array, *, rng_key: Array | None = None) -> Array:
        """Score every label at every position.

        Args:
            x: Hidden states (..., T, D).
            rng_key: Needed in training with a dropout above 0, else a ValueError.

        Returns:
            Logits (..., T, L).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(x.shape, self.config.d_model)
        rate = self.config.dropout if self.training else 0.0
        return self.classifier_proj(functional.apply_dropout(x, rate, rng_key=rng_key))


class QuestionAnsweringHead(Module):
    """A start and an end logit at every position.

    Args:
        d_model: Width D of the hidden states.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If the width is below 1.
    """

    def __init__(self, d_model: int, *, rngs: nnx.Rngs):
        super().__init__()
        self.config = QuestionAnsweringHeadConfig(d_model=d_model)
        self.span_proj = linear(d_model, 2, rngs=rngs)

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Score every position as the first and as the last of the answer.

        Args:
            x: Hidden states (..., T, D).

        Returns:
            Start logits (..., T) and end logits (..., T).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(x.shape, self.config.d_model)
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
        rngs: Where the parameters are drawn from.

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
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(MaskedLMHeadConfig, locals())
        width = self.config.width
        self.transform_proj = linear(d_model, width, bias=transform_bias, rngs=rngs)
        self.transform_norm = LayerNorm(width, eps=eps, bias=norm_bias, rngs=rngs)
        self.vocab_bias_param = nnx.Param(jnp.zeros(vocab_size, jnp.float32))

    def __call__(self, x: Array, embedding: Embedding) -> Array:
        """Score every token at every position.

        Args:
            x: Hidden states (..., T, D).
            embedding: The token embedding, whose rows are the vectors of the tokens.

        Returns:
            Logits (..., T, V).

        Raises:
            ValueError: If the last axis is not D.
        """
        check_width(x.shape, self.config.d_model)
        x = functional.activate(self.transform_proj(x), self.config.activation)  # (..., T, E)
        return embedding.attend(self.transform_norm(x)) + self.vocab_bias_param[...]  # (..., T, V)
