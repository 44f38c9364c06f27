"""What an encoder with its task heads is (Devlin et al. 2019)."""

from dataclasses import dataclass, fields
from typing import ClassVar

from .checks.sizes import check_kind
from .config import Config, Leaves, under
from .encoder import EncoderConfig
from .task_heads import (
    HeadConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
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
