"""What the task heads of an encoder are (Devlin et al. 2019)."""

from dataclasses import dataclass
from typing import ClassVar

from .checks.sizes import check_above_zero, check_boolean, check_choice, check_positive, check_rate
from .config import Config, Leaf, Leaves, linear_leaves, under
from .feed_forward import ACTIVATIONS
from .norm import LayerNormConfig


@dataclass(frozen=True, kw_only=True)
class MaskedLMHeadConfig(Config):
    """Vocabulary logits at every position, through the token embedding (tied).

    Attributes:
        d_model: Width.
        vocab_size: Number of tokens.
        activation: Between the transform and its norm.
        eps: Of the norm.
        embed_dim: Width of the token embedding, to which the transform goes; None means d_model.
        transform_bias: Whether the transform's linear map carries a bias.
        norm_bias: Whether its norm does.
    """

    component: ClassVar[str] = "MaskedLMHead"
    d_model: int
    vocab_size: int
    activation: str = "gelu"
    eps: float = 1e-5
    embed_dim: int | None = None
    transform_bias: bool = True
    norm_bias: bool = True

    def __post_init__(self):
        check_positive(d_model=self.d_model, vocab_size=self.vocab_size)
        check_choice(ACTIVATIONS, activation=self.activation)
        check_above_zero(eps=self.eps)
        if self.embed_dim is not None:
            check_positive(embed_dim=self.embed_dim)
        check_boolean(transform_bias=self.transform_bias, norm_bias=self.norm_bias)

    @property
    def width(self) -> int:
        """Return the width of the token embedding."""
        return self.embed_dim or self.d_model

    def leaves(self) -> Leaves:
        norm = LayerNormConfig(d_model=self.width, bias=self.norm_bias)
        transform = linear_leaves(self.d_model, self.width, bias=self.transform_bias)
        return (
            under("transform_proj", transform)
            | under("transform_norm", norm.leaves())
            | {"vocab_bias_param": Leaf((self.vocab_size,), "param")}
        )


@dataclass(frozen=True, kw_only=True)
class NextSentenceHeadConfig(Config):
    """Two logits from the pooled vector: the second sentence follows, or does not.

    Attributes:
        d_model: Width of the pooled vector.
    """

    component: ClassVar[str] = "NextSentenceHead"
    d_model: int

    def __post_init__(self):
        check_positive(d_model=self.d_model)

    def leaves(self) -> Leaves:
        return under("classifier_proj", linear_leaves(self.d_model, 2))


@dataclass(frozen=True, kw_only=True)
class SequenceClassificationHeadConfig(Config):
    """Label logits from the pooled vector.

    Attributes:
        d_model: Width of the pooled vector.
        num_labels: Number of logits.
        dropout: Rate on the pooled vector.
    """

    component: ClassVar[str] = "SequenceClassificationHead"
    d_model: int
    num_labels: int
    dropout: float = 0.1

    def __post_init__(self):
        check_positive(d_model=self.d_model, num_labels=self.num_labels)
        check_rate(dropout=self.dropout)

    def leaves(self) -> Leaves:
        return under("classifier_proj", linear_leaves(self.d_model, self.num_labels))


@dataclass(frozen=True, kw_only=True)
class TokenClassificationHeadConfig(SequenceClassificationHeadConfig):
    """Label logits at every position.

    Attributes:
        d_model: Width of the hidden states.
        num_labels: Number of logits.
        dropout: Rate on the hidden states.
    """

    component: ClassVar[str] = "TokenClassificationHead"


@dataclass(frozen=True, kw_only=True)
class QuestionAnsweringHeadConfig(Config):
    """A start and an end logit at every position.

    Attributes:
        d_model: Width of the hidden states.
    """

    component: ClassVar[str] = "QuestionAnsweringHead"
    d_model: int

    def __post_init__(self):
        check_positive(d_model=self.d_model)

    def leaves(self) -> Leaves:
        return under("span_proj", linear_leaves(self.d_model, 2))


HeadConfig = (
    MaskedLMHeadConfig
    | NextSentenceHeadConfig
    | SequenceClassificationHeadConfig
    | QuestionAnsweringHeadConfig
)
