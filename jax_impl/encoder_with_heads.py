"""An encoder and the task heads that read it.

T positions   D model width   V vocabulary   L labels
"""

from typing import Any, NamedTuple

from flax import nnx
from jax import Array

from diptych.spec import (
    EncoderConfig,
    EncoderWithHeadsConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
)

from ._keys import split
from .encoder import Encoder
from .module import Module, config_of
from .stack import StackOutput
from .task_heads import (
    MaskedLMHead,
    NextSentenceHead,
    QuestionAnsweringHead,
    SequenceClassificationHead,
    TokenClassificationHead,
)


class HeadsOutput(NamedTuple):
    """What an encoder with heads returns; None where there is no such head.

    Attributes:
        encoded: What the encoder returns.
        masked_lm: Vocabulary logits (..., T, V).
        next_sentence: Logits (..., 2).
        sequence_classification: Label logits (..., L).
        token_classification: Label logits (..., T, L).
        question_answering: Start logits and end logits, each (..., T).
    """

    encoded: StackOutput
    masked_lm: Array | None = None
    next_sentence: Array | None = None
    sequence_classification: Array | None = None
    token_classification: Array | None = None
    question_answering: tuple[Array, Array] | None = None


class EncoderWithHeads(Module):
    """An encoder of text and one task head at least.

    Args:
        encoder: Config of the encoder, with embeddings.
        masked_lm: Head over every position, tied to the token embedding.
        next_sentence: Head over the pooled vector.
        sequence_classification: Head over the pooled vector.
        token_classification: Head over every position.
        question_answering: Head over every position.
        rngs: Where the parameters are drawn from.

    Raises:
        ValueError: If a head does not fit the encoder, or there is none.
    """

    def __init__(
        self,
        encoder: EncoderConfig,
        *,
        masked_lm: MaskedLMHeadConfig | None = None,
        next_sentence: NextSentenceHeadConfig | None = None,
        sequence_classification: SequenceClassificationHeadConfig | None = None,
        token_classification: TokenClassificationHeadConfig | None = None,
        question_answering: QuestionAnsweringHeadConfig | None = None,
        rngs: nnx.Rngs,
    ):
        super().__init__()
        self.config = config_of(EncoderWithHeadsConfig, locals())
        self.encoder = Encoder.from_config(encoder, rngs=rngs)
        if masked_lm:
            self.masked_lm = MaskedLMHead.from_config(masked_lm, rngs=rngs)
        if next_sentence:
            self.next_sentence = NextSentenceHead.from_config(next_sentence, rngs=rngs)
        if sequence_classification:
            self.sequence_classification = SequenceClassificationHead.from_config(
                sequence_classification, rngs=rngs
            )
        if token_classification:
            self.token_classification = TokenClassificationHead.from_config(
                token_classification, rngs=rngs
            )
        if question_answering:
            self.question_answering = QuestionAnsweringHead.from_config(
                question_answering, rngs=rngs
            )

    def __call__(
        self,
        inputs: Array,
        *,
        key_mask: Array | None = None,
        mask: Array | None = None,
        token_type_ids: Array | None = None,
        position_ids: Array | None = None,
        need_weights: bool = False,
        need_hidden_states: bool = False,
        rng_key: Array | None = None,
    ) -> HeadsOutput:
        """Encode a batch of sequences and apply every head; the arguments are the encoder's.

        Args:
            inputs: Token ids (..., T).
            key_mask: True or not 0 at real tokens, false at padding: (..., T).
            mask: True or not 0 where a query may attend to a key: (T, T), per sample (..., T, T)
                or per head (..., N, T, T).
            token_type_ids: Types, broadcasting to (..., T); 0 everywhere by default.
            position_ids: Positions, broadcasting to (..., T); 0 .. T - 1 by default.
            need_weights: Whether every layer's attention weights are returned.
            need_hidden_states: Whether every layer's output is returned.
            rng_key: Needed in training with a rate above 0, else a ValueError.

        Returns:
            What the encoder returns, and the logits of every head.

        Raises:
            ValueError, TypeError, IndexError: As the encoder's.
        """
        encoder_key, sequence_key, token_key = split(rng_key, 3)
        encoded = self.encoder(
            inputs,
            key_mask=key_mask,
            mask=mask,
            token_type_ids=token_type_ids,
            position_ids=position_ids,
            need_weights=need_weights,
            need_hidden_states=need_hidden_states,
            rng_key=encoder_key,
        )
        config, x = self.config, encoded.output
        pooled: Any = encoded.pooled  # the config has seen to it that a head that reads it finds it
        table = self.encoder.embedding.token_embed
        return HeadsOutput(
            encoded=encoded,
            masked_lm=self.masked_lm(x, table) if config.masked_lm else None,
            next_sentence=self.next_sentence(pooled) if config.next_sentence else None,
            sequence_classification=(
                self.sequence_classification(pooled, rng_key=sequence_key)
                if config.sequence_classification
                else None
            ),
            token_classification=(
                self.token_classification(x, rng_key=token_key)
                if config.token_classification
                else None
            ),
            question_answering=self.question_answering(x) if config.question_answering else None,
        )
