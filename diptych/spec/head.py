"""What the task heads of an encoder are, and an encoder with its heads (Devlin et al. 2019)."""

from dataclasses import dataclass, fields
from typing import ClassVar

from .checks.sizes import (
    check_above_zero,
    check_boolean,
    check_choice,
    check_kind,
    check_positive,
    check_rate,
)
from .config import Config, Leaf, Leaves, linear_leaves, under
from .encoder import EncoderConfig
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


@dataclass(frozen=True, kw_only=True)
class EncoderWithHeadsConfig(Config):
    """An encoder and the task heads that read it.

    Attributes:
        encoder: Config of the encoder; it needs an embedding, and a pooler where a head reads it.
        masked_lm: Head over every position, tied to the token embedding.
        next_sentence: Head over the pooled vector.
        sequence_classification: Head over the pooled vector.
        token_classification: Head over every position.
        question_answering: Head over every position.

    Raises:
        ValueError: If a head does not fit the encoder, or there is none.
    """

    component: ClassVar[str] = "EncoderWithHeads"
    encoder: EncoderConfig
    masked_lm: MaskedLMHeadConfig | None = None
    next_sentence: NextSentenceHeadConfig | None = None
    sequence_classification: SequenceClassificationHeadConfig | None = None
    token_classification: TokenClassificationHeadConfig | None = None
    question_answering: QuestionAnsweringHeadConfig | None = None

    def __post_init__(self):
        for field in fields(self):
            check_kind(field.type, **{field.name: getattr(self, field.name)})  # type: ignore[arg-type]
        d_model = self.encoder.d_model
        embedding = self.encoder.embedding
        if embedding is None:
            raise ValueError("encoder.embedding=None: an encoder with heads reads token ids")
        if not self.heads:
            raise ValueError("at least one head must be given")
        for name, head in self.heads.items():
            if head.d_model != d_model:
                raise ValueError(f"{name}.d_model={head.d_model} must equal d_model={d_model}")
        if not self.encoder.pooler and (self.next_sentence or self.sequence_classification):
            raise ValueError("encoder.pooler=False, but a head reads the pooled vector")
        if self.masked_lm and self.masked_lm.vocab_size != embedding.vocab_size:
            raise ValueError(
                f"masked_lm.vocab_size={self.masked_lm.vocab_size} must equal "
                f"embedding.vocab_size={embedding.vocab_size} (the head is tied to it)"
            )
        if self.masked_lm and self.masked_lm.width != embedding.width:
            raise ValueError(
                f"masked_lm.embed_dim={self.masked_lm.width} must equal "
                f"embedding.embed_dim={embedding.width} (the head is tied to it)"
            )

    @property
    def heads(self) -> dict[str, HeadConfig]:
        """Return the heads that are there, by attribute name."""
        names = [field.name for field in fields(self) if field.name != "encoder"]
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def leaves(self) -> Leaves:
        leaves = under("encoder", self.encoder.leaves())
        for name, head in self.heads.items():
            leaves |= under(name, head.leaves())
        return leaves
