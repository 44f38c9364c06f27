"""What a component is, before any framework: configs, leaves, checks, tables, errors."""

from .attention.attention_pooling import AttentionPoolingConfig
from .attention.head_attention import HeadAttentionConfig
from .attention.latent_attention import LatentAttentionConfig
from .attention.multi_head_attention import AttentionConfig, QKNormConfig
from .attention.scaled_dot_product_attention import ScaledDotProductAttentionConfig, ScoreConfig
from .audio import AudioEncoderConfig
from .block import BlockConfig
from .config import COMPONENTS, Config, Leaf, Leaves
from .decoder import DecoderConfig
from .dual_encoder import DualEncoderConfig, EncoderWithProjectionConfig
from .embedding import EmbeddingConfig, TextEmbeddingConfig
from .encoder import EncoderConfig
from .encoder_decoder import EncoderDecoderConfig
from .encoder_with_heads import EncoderWithHeadsConfig
from .errors import CheckpointError, OutputError
from .feed_forward import FeedForwardConfig, GatedFeedForwardConfig
from .logits_head import LogitsHeadConfig
from .mixture import MixtureOfExpertsConfig, RouterConfig
from .norm import LayerNormConfig, NormConfig, RMSNormConfig
from .patch_embedding import PatchEmbeddingConfig
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
from .tables import BucketTable, RotaryTable, SinusoidTable, SlopeTable
from .task_heads import (
    MaskedLMHeadConfig,
    NextSentenceHeadConfig,
    QuestionAnsweringHeadConfig,
    SequenceClassificationHeadConfig,
    TokenClassificationHeadConfig,
)
from .transformer_layer import TransformerDecoderLayerConfig, TransformerEncoderLayerConfig
from .vision import VisionEncoderConfig

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
