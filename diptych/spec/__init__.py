"""What a component is, before any framework: configs, leaves, checks, tables, errors."""

from .attention import (
    AttentionConfig,
    HeadAttentionConfig,
    ScaledDotProductAttentionConfig,
    ScoreConfig,
)
from .block import TransformerEncoderLayerConfig
from .config import Config, Leaf, Leaves
from .embedding import EmbeddingConfig, TextEmbeddingConfig
from .encoder import EncoderConfig
from .errors import CheckpointError, OutputError
from .feed_forward import FeedForwardConfig
from .head import (
    EncoderWithHeadsConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
)
from .norm import LayerNormConfig
from .position import PositionalEncodingConfig
from .tables import SinusoidTable

COMPONENTS: dict[str, type[Config]] = {
    config.component: config
    for config in (
        AttentionConfig,
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
        SequenceClassificationHeadConfig,
        TextEmbeddingConfig,
        TokenClassificationHeadConfig,
        TransformerEncoderLayerConfig,
    )
}
"""Every component's config class by the name that its class has in both panels."""

__all__ = [
    "COMPONENTS",
    "AttentionConfig",
    "CheckpointError",
    "Config",
    "EmbeddingConfig",
    "EncoderConfig",
    "EncoderWithHeadsConfig",
    "FeedForwardConfig",
    "HeadAttentionConfig",
    "LayerNormConfig",
    "Leaf",
    "Leaves",
    "MaskedLMHeadConfig",
    "NextSentenceHeadConfig",
    "OutputError",
    "PositionalEncodingConfig",
    "QuestionAnsweringHeadConfig",
    "ScaledDotProductAttentionConfig",
    "ScoreConfig",
    "SequenceClassificationHeadConfig",
    "SinusoidTable",
    "TextEmbeddingConfig",
    "TokenClassificationHeadConfig",
    "TransformerEncoderLayerConfig",
]
