"""What a component is, before any framework: configs, leaves, checks, tables, errors."""

from .attention import (
    AttentionConfig,
    HeadAttentionConfig,
    QKNormConfig,
    ScaledDotProductAttentionConfig,
    ScoreConfig,
)
from .audio import AudioEncoderConfig
from .block import BlockConfig, TransformerDecoderLayerConfig, TransformerEncoderLayerConfig
from .config import COMPONENTS, Config, Leaf, Leaves
from .decoder import DecoderConfig, LogitsHeadConfig
from .dual_encoder import DualEncoderConfig, EncoderWithProjectionConfig
from .embedding import EmbeddingConfig, TextEmbeddingConfig
from .encoder import EncoderConfig
from .encoder_decoder import EncoderDecoderConfig
from .errors import CheckpointError, OutputError
from .feed_forward import FeedForwardConfig, GatedFeedForwardConfig
from .head import (
    EncoderWithHeadsConfig,
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
)
from .latent_attention import LatentAttentionConfig
from .mixture import MixtureOfExpertsConfig, RouterConfig
from .norm import LayerNormConfig, NormConfig, RMSNormConfig
from .position import PositionalEncodingConfig
from .position_bias import AlibiConfig, RelativeBiasConfig, RelativePositionBiasConfig
from .rotary import (
    DynamicScaling,
    LinearScaling,
    Llama3Scaling,
    LongRopeScaling,
    RotaryConfig,
    YarnScaling,
)
from .tables.bias import BucketTable, SlopeTable
from .tables.rotary import RotaryTable
from .tables.sinusoid import SinusoidTable
from .vision import AttentionPoolingConfig, PatchEmbeddingConfig, VisionEncoderConfig

__all__ = [
    "COMPONENTS",
    "AlibiConfig",
    "AttentionConfig",
    "AttentionPoolingConfig",
    "AudioEncoderConfig",
    "BlockConfig",
    "BucketTable",
    "CheckpointError",
    "Config",
    "DecoderConfig",
    "DualEncoderConfig",
    "DynamicScaling",
    "EmbeddingConfig",
    "EncoderConfig",
    "EncoderDecoderConfig",
    "EncoderWithHeadsConfig",
    "EncoderWithProjectionConfig",
    "FeedForwardConfig",
    "GatedFeedForwardConfig",
    "HeadAttentionConfig",
    "LatentAttentionConfig",
    "LayerNormConfig",
    "Leaf",
    "Leaves",
    "LinearScaling",
    "Llama3Scaling",
    "LogitsHeadConfig",
    "LongRopeScaling",
    "MaskedLMHeadConfig",
    "MixtureOfExpertsConfig",
    "NextSentenceHeadConfig",
    "NormConfig",
    "OutputError",
    "PatchEmbeddingConfig",
    "PositionalEncodingConfig",
    "QKNormConfig",
    "QuestionAnsweringHeadConfig",
    "RMSNormConfig",
    "RelativeBiasConfig",
    "RelativePositionBiasConfig",
    "RotaryConfig",
    "RotaryTable",
    "RouterConfig",
    "ScaledDotProductAttentionConfig",
    "ScoreConfig",
    "SequenceClassificationHeadConfig",
    "SinusoidTable",
    "SlopeTable",
    "TextEmbeddingConfig",
    "TokenClassificationHeadConfig",
    "TransformerDecoderLayerConfig",
    "TransformerEncoderLayerConfig",
    "VisionEncoderConfig",
    "YarnScaling",
]
