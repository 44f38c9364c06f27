"""The table of component calls that the tiers run: every component with every option that counts.

The data is floating where it is differentiated; ids, masks and switches are options or integers.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.spec import (
    AttentionConfig,
    Config,
    EmbeddingConfig,
    EncoderConfig,
    EncoderWithHeadsConfig,
    FeedForwardConfig,
    HeadAttentionConfig,
    LayerNormConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    PositionalEncodingConfig,
    QuestionAnsweringHeadConfig,
    ScaledDotProductAttentionConfig,
    ScoreConfig,
    SequenceClassificationHeadConfig,
    TextEmbeddingConfig,
    TokenClassificationHeadConfig,
    TransformerEncoderLayerConfig,
)
from parity_tests.harness import Arrays, random_arrays
from parity_tests.sizes import GROUPED_K, GROUPED_N, MAX_LEN, NUM_LABELS, VOCAB, B, D, F, H, N, V


@dataclass(frozen=True)
class ComponentCase:
    """One call of a component.

    Attributes:
        config: Of the component.
        arguments: Positional arguments by a name of our own.
        options: Keyword arguments.
    """

    config: Config
    arguments: dict[str, np.ndarray]
    options: dict[str, Any] = field(default_factory=dict)


_random = np.random.default_rng(11)
_T, _S = 11, 13


def _normal(*shape: int) -> np.ndarray:
    return _random.normal(size=shape)


def _coins(*shape: int) -> np.ndarray:
    return _random.random(shape) < 0.7


_ids = _random.integers(0, VOCAB, (B, _T))
_key_mask = np.arange(_T) < np.array([[_T], [7]])
_everything = {"need_weights": True, "need_hidden_states": True}
_text = TextEmbeddingConfig(vocab_size=VOCAB, d_model=D, max_seq_len=MAX_LEN, num_token_types=3)
_layer = TransformerEncoderLayerConfig(d_model=D, num_heads=N, d_ff=F, activation="gelu", eps=1e-12)
_x = {"x": _normal(B, _T, D)}

CASES: dict[str, ComponentCase] = {
    "ScaledDotProductAttention": ComponentCase(
        ScaledDotProductAttentionConfig(d_k=H),
        {"query": _normal(B, _T, H), "key": _normal(B, _S, H), "value": _normal(B, _S, V)},
        {"mask": _coins(_T, _S)},
    ),
    "ScaledDotProductAttention, causal, capped": ComponentCase(
        ScaledDotProductAttentionConfig(d_k=H, score=ScoreConfig(is_causal=True, softcap=1.1)),
        {"query": _normal(B, N, 7, H), "key": _normal(B, N, 5, H), "value": _normal(B, N, 5, V)},
        {"offset": -2},
    ),
    "HeadAttention": ComponentCase(
        HeadAttentionConfig(emb_size=D, head_size=H, max_seq_len=MAX_LEN),
        _x,
        {"need_weights": True},
    ),
    "MultiHeadAttention": ComponentCase(
        AttentionConfig(d_model=D, num_heads=N),
        {"query": _normal(B, _T, D), "key": _normal(B, _S, D), "value": _normal(B, _S, D)},
        {"mask": _coins(B, _T, _S) & _coins(B, _T, 1)},
    ),
    "MultiHeadAttention, grouped": ComponentCase(
        AttentionConfig(
            d_model=D,
            num_heads=GROUPED_N,
            num_kv_heads=GROUPED_K,
            head_dim=H,
            qkv_bias=False,
            out_bias=False,
            score=ScoreConfig(is_causal=True, window=4, scale=0.3),
        ),
        {"query": _normal(B, _T, D), "key": _normal(B, _S, D), "value": _normal(B, _S, D)},
        {"bias": _normal(GROUPED_N, 1, _S)[None], "offset": np.array([1, 2])},
    ),
    "PositionalEncoding": ComponentCase(
        PositionalEncodingConfig(d_model=D, max_seq_len=MAX_LEN), _x, {"offset": 3}
    ),
    "LayerNorm": ComponentCase(LayerNormConfig(d_model=D, eps=1e-3), _x),
    "Embedding": ComponentCase(EmbeddingConfig(num_embeddings=VOCAB, d_model=D), {"ids": _ids}),
    "TextEmbedding": ComponentCase(
        _text,
        {"ids": _ids},
        {
            "token_type_ids": _random.integers(0, 3, (B, _T)),
            "position_ids": _random.integers(0, MAX_LEN, (B, _T)),
        },
    ),
    "TransformerEncoderLayer": ComponentCase(
        TransformerEncoderLayerConfig(d_model=D, num_heads=N, d_ff=F),
        _x,
        {"key_mask": _key_mask, "need_weights": True},
    ),
    "TransformerEncoderLayer, pre-norm": ComponentCase(
        TransformerEncoderLayerConfig(
            d_model=D, num_heads=N, d_ff=F, activation="gelu", norm_placement="pre", eps=1e-2
        ),
        _x,
        {"mask": np.tril(np.ones((_T, _T), bool)), "bias": _normal(N, _T, _T)[None]},
    ),
    "Encoder": ComponentCase(
        EncoderConfig(layer=_layer, num_layers=2, embedding=_text, pooler=True),
        {"ids": _ids},
        {"key_mask": _key_mask, **_everything},
    ),
    "Encoder of vectors": ComponentCase(
        EncoderConfig(layer=_layer, num_layers=2), _x, {"mask": _coins(_T, _T)}
    ),
    "EncoderWithHeads": ComponentCase(
        EncoderWithHeadsConfig(
            encoder=EncoderConfig(layer=_layer, num_layers=1, embedding=_text, pooler=True),
            masked_lm=MaskedLMHeadConfig(d_model=D, vocab_size=VOCAB),
            next_sentence=NextSentenceHeadConfig(d_model=D),
            sequence_classification=SequenceClassificationHeadConfig(
                d_model=D, num_labels=NUM_LABELS
            ),
            token_classification=TokenClassificationHeadConfig(d_model=D, num_labels=NUM_LABELS),
            question_answering=QuestionAnsweringHeadConfig(d_model=D),
        ),
        {"ids": _ids},
        {"key_mask": _key_mask},
    ),
} | {
    f"FeedForward, {activation}": ComponentCase(
        FeedForwardConfig(d_model=D, d_ff=F, activation=activation), _x
    )
    for activation in ("relu", "gelu", "gelu_tanh", "silu", "tanh")
}


def random_tensors(config: Config, seed: int = 5) -> Arrays:
    """Return float64 parameters by canonical name: no bias is 0, no norm scale is 1."""
    leaves = config.leaves()
    tensors = random_arrays(seed, {name: leaf.shape for name, leaf in leaves.items()}, size=0.3)
    for name, leaf in leaves.items():
        if leaf.kind == "norm" and name.endswith("weight"):
            tensors[name] += 1.0
    return tensors
