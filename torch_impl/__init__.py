"""The PyTorch panel: attention and transformer components as ``torch.nn`` modules."""

from . import _framework as _framework
from . import functional
from .attention import HeadAttention, MultiHeadAttention, ScaledDotProductAttention
from .block import TransformerEncoderLayer
from .embedding import Embedding, TextEmbedding
from .encoder import Encoder, StackOutput
from .encoder_with_heads import EncoderWithHeads, HeadsOutput
from .feed_forward import FeedForward
from .head import (
    MaskedLMHead,
    NextSentenceHead,
    QuestionAnsweringHead,
    SequenceClassificationHead,
    TokenClassificationHead,
)
from .linear import linear
from .module import Module
from .norm import LayerNorm
from .position import PositionalEncoding
from .state import export_state, functional_call, load_model, load_state, save_model

__all__ = [
    "Embedding",
    "Encoder",
    "EncoderWithHeads",
    "FeedForward",
    "HeadAttention",
    "HeadsOutput",
    "LayerNorm",
    "MaskedLMHead",
    "Module",
    "MultiHeadAttention",
    "NextSentenceHead",
    "PositionalEncoding",
    "QuestionAnsweringHead",
    "ScaledDotProductAttention",
    "SequenceClassificationHead",
    "StackOutput",
    "TextEmbedding",
    "TokenClassificationHead",
    "TransformerEncoderLayer",
    "export_state",
    "functional",
    "functional_call",
    "linear",
    "load_model",
    "load_state",
    "save_model",
]
