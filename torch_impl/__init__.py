"""The PyTorch panel: attention and transformer components as ``torch.nn`` modules."""

from . import _framework as _framework
from . import functional
from .attention.attention_pooling import AttentionPooling
from .attention.head_attention import HeadAttention
from .attention.latent_attention import LatentAttention
from .attention.multi_head_attention import MultiHeadAttention
from .attention.projected_attention import KeyValue
from .attention.scaled_dot_product_attention import ScaledDotProductAttention
from .audio import AudioEncoder
from .block import Block, BlockOutput
from .conv import conv1d, conv2d
from .decoder import Decoder
from .dual_encoder import DualEncoder, DualEncoderOutput, EncoderWithProjection, ProjectionOutput
from .embedding import Embedding, TextEmbedding
from .encoder import Encoder
from .encoder_decoder import EncoderDecoder, EncoderDecoderOutput
from .encoder_with_heads import EncoderWithHeads, HeadsOutput
from .feed_forward import FeedForward, GatedFeedForward
from .generate import Generation, generate
from .linear import linear
from .logits_head import LogitsHead
from .mixture import MixtureOfExperts
from .module import Module
from .norm import LayerNorm, RMSNorm, norm
from .patch_embedding import PatchEmbedding
from .position import PositionalEncoding
from .position_bias import RelativePositionBias
from .stack import StackOutput
from .state import export_state, functional_call, load_model, load_state, save_model
from .task_heads import (
    MaskedLMHead,
    NextSentenceHead,
    QuestionAnsweringHead,
    SequenceClassificationHead,
    TokenClassificationHead,
)
from .transformer_layer import TransformerDecoderLayer, TransformerEncoderLayer
from .vision import VisionEncoder

__all__ = [
    "AttentionPooling",
    "AudioEncoder",
    "Block",
    "BlockOutput",
    "Decoder",
    "DualEncoder",
    "DualEncoderOutput",
    "Embedding",
    "Encoder",
    "EncoderDecoder",
    "EncoderDecoderOutput",
    "EncoderWithHeads",
    "EncoderWithProjection",
    "FeedForward",
    "GatedFeedForward",
    "Generation",
    "HeadAttention",
    "HeadsOutput",
    "KeyValue",
    "LatentAttention",
    "LayerNorm",
    "LogitsHead",
    "MaskedLMHead",
    "MixtureOfExperts",
    "Module",
    "MultiHeadAttention",
    "NextSentenceHead",
    "PatchEmbedding",
    "PositionalEncoding",
    "ProjectionOutput",
    "QuestionAnsweringHead",
    "RMSNorm",
    "RelativePositionBias",
    "ScaledDotProductAttention",
    "SequenceClassificationHead",
    "StackOutput",
    "TextEmbedding",
    "TokenClassificationHead",
    "TransformerDecoderLayer",
    "TransformerEncoderLayer",
    "VisionEncoder",
    "conv1d",
    "conv2d",
    "export_state",
    "functional",
    "functional_call",
    "generate",
    "linear",
    "load_model",
    "load_state",
    "norm",
    "save_model",
]
