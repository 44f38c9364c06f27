"""An encoder with heads for tasks; the encoder's formula proves the heads."""

from dataclasses import replace
from typing import Any

from diptych.spec import (
    EmbeddingConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
)
from parity_tests.attention.oracle import Array
from parity_tests.components.case import ComponentCase
from parity_tests.components.formulas import Tensors, linear, under
from parity_tests.components.room import IDS, QUERIES, Example, Room, X, key_mask
from parity_tests.components.rooms.embedding import TYPED_TEXT
from parity_tests.components.rooms.encoder import ENCODER, encoder
from parity_tests.components.rooms.feed_forward import ACTIVATIONS
from parity_tests.components.rooms.norms import layer_norm
from parity_tests.components.rooms.transformer_layers import GELU_LAYER
from parity_tests.support.sizes import NUM_LABELS, VOCAB, D

HEADS: dict[str, Any] = {
    "masked_lm": MaskedLMHeadConfig(d_model=D, vocab_size=VOCAB),
    "next_sentence": NextSentenceHeadConfig(d_model=D),
    "sequence_classification": SequenceClassificationHeadConfig(d_model=D, num_labels=NUM_LABELS),
    "token_classification": TokenClassificationHeadConfig(d_model=D, num_labels=NUM_LABELS),
    "question_answering": QuestionAnsweringHeadConfig(d_model=D),
}


def encoder_with_heads(
    config: Any, tensors: Tensors, inputs: Array, **options: Any
) -> dict[str, Any]:
    """Encode, and apply every task head (Devlin et al. 2019, sections 3 and 4)."""
    encoded = encoder(config.encoder, under("encoder", tensors), inputs, **options)
    x, pooled, found = encoded["output"], encoded["pooled"], {"encoded": encoded}
    for name, head in config.heads.items():
        own = under(name, tensors)
        match name:
            case "masked_lm":
                hidden = ACTIVATIONS[head.activation](linear(own, "transform_proj", x))
                hidden = layer_norm(head, under("transform_norm", own), hidden)
                table = tensors["encoder.embedding.token_embed.weight"]
                found[name] = hidden @ table.T + own["vocab_bias_param"]
            case "next_sentence" | "sequence_classification":
                found[name] = linear(own, "classifier_proj", pooled)
            case "token_classification":
                found[name] = linear(own, "classifier_proj", x)
            case "question_answering":
                logits = linear(own, "span_proj", x)
                found[name] = (logits[..., 0], logits[..., 1])
    return found


_typed = EncoderConfig(layer=GELU_LAYER, num_layers=1, embedding=TYPED_TEXT, pooler=True)
_narrow = replace(_typed, embedding=replace(TYPED_TEXT, embed_dim=4), pooler=False)
_few_biases = replace(HEADS["masked_lm"], embed_dim=4, transform_bias=False, norm_bias=False)

ENCODER_WITH_HEADS = Room(
    Example(EncoderWithHeadsConfig(encoder=ENCODER, **HEADS), (IDS,)),
    changes={"encoder": replace(ENCODER, num_layers=1), **dict.fromkeys(HEADS)},
    formula=encoder_with_heads,
    calls={
        "EncoderWithHeads": lambda draw: ComponentCase(
            EncoderWithHeadsConfig(encoder=_typed, **HEADS),
            {"ids": draw.ids()},
            {"key_mask": key_mask(QUERIES, 7)},
        ),
        "EncoderWithHeads, narrow tables, few biases": lambda draw: ComponentCase(
            EncoderWithHeadsConfig(encoder=_narrow, masked_lm=_few_biases),
            {"ids": draw.ids()},
            {"key_mask": key_mask(QUERIES, 7)},
            is_slow=True,
        ),
    },
    is_slow=True,
)
MASKED_LM_HEAD = Room(
    Example(HEADS["masked_lm"], (X, EmbeddingConfig(num_embeddings=VOCAB, d_model=D))),
    changes={
        "d_model": 2 * D,
        "vocab_size": 5,
        "activation": "gelu_tanh",
        "eps": 0.1,
        "embed_dim": 4,
        "transform_bias": False,
        "norm_bias": False,
    },
)
NEXT_SENTENCE_HEAD = Room(
    Example(HEADS["next_sentence"], (X[:, 0],)),
    changes={"d_model": 2 * D},
)
SEQUENCE_CLASSIFICATION_HEAD = Room(
    Example(HEADS["sequence_classification"], (X[:, 0],)),
    changes={"d_model": 2 * D, "num_labels": 5, "dropout": 0.5},
)
TOKEN_CLASSIFICATION_HEAD = Room(
    Example(HEADS["token_classification"], (X,)),
    changes={"d_model": 2 * D, "num_labels": 5, "dropout": 0.5},
)
QUESTION_ANSWERING_HEAD = Room(
    Example(HEADS["question_answering"], (X,)),
    changes={"d_model": 2 * D},
)
