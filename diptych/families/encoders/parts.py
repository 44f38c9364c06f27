"""Settings that the encoders after BERT share, and the layer and embedding that they say."""

from collections.abc import Mapping
from typing import Any

from ...spec import (
    AttentionConfig,
    EncoderConfig,
    FeedForwardConfig,
    MaskedLMHeadConfig,
    NormConfig,
    TextEmbeddingConfig,
    TransformerEncoderLayerConfig,
)
from ...spec.transformer_layer import LAYER_NORM_PLACEMENTS
from ..settings import Setting, require
from ..transformers_settings import ARCHITECTURES, NUMBER, read_activation, write_activation

UNDERSTOOD = {
    **ARCHITECTURES,
    "attention_probs_dropout_prob": Setting(NUMBER, 0.1),
    "hidden_act": Setting(str, "gelu"),
    "hidden_dropout_prob": Setting(NUMBER, 0.1),
    "hidden_size": Setting(int),
    "intermediate_size": Setting(int),
    "layer_norm_eps": Setting(NUMBER, 1e-12),
    "max_position_embeddings": Setting(int),
    "num_attention_heads": Setting(int),
    "num_hidden_layers": Setting(int),
    "type_vocab_size": Setting(int),
    "vocab_size": Setting(int),
}
HEAD_BOOKKEEPING = frozenset({"classifier_dropout", "classifier_dropout_prob"})


def read_layer(values: Mapping[str, Any]) -> TransformerEncoderLayerConfig:
    """Return the layer that the settings describe."""
    return TransformerEncoderLayerConfig(
        d_model=require(values, "hidden_size"),
        num_heads=require(values, "num_attention_heads"),
        d_ff=require(values, "intermediate_size"),
        dropout=values["hidden_dropout_prob"],
        activation=read_activation(values, "hidden_act"),
        eps=values["layer_norm_eps"],
        attention_dropout=values["attention_probs_dropout_prob"],
    )


def named_layer(encoder: EncoderConfig) -> TransformerEncoderLayerConfig | None:
    """Return the original transformer's layer, if that is what all layers are."""
    block: Any = encoder.layers[0]
    if not isinstance(block.attention, AttentionConfig) or not isinstance(
        block.feed_forward, FeedForwardConfig
    ):
        return None
    if block.norm_placement not in LAYER_NORM_PLACEMENTS:
        return None
    layer = TransformerEncoderLayerConfig(
        d_model=block.d_model,
        num_heads=block.attention.num_heads,
        d_ff=block.feed_forward.d_ff,
        dropout=block.dropout,
        activation=block.feed_forward.activation,
        norm_placement=block.norm_placement,
        eps=block.norm.of(block.d_model).eps,
        attention_dropout=block.attention.attention_dropout,
    )
    return layer if set(encoder.layers) == {layer.block} else None


def read_embedding(
    values: Mapping[str, Any], max_seq_len: int, **options: Any
) -> TextEmbeddingConfig:
    """Return the embedding that the settings describe."""
    return TextEmbeddingConfig(
        vocab_size=require(values, "vocab_size"),
        d_model=values["hidden_size"],
        max_seq_len=max_seq_len,
        num_token_types=require(values, "type_vocab_size"),
        norm=NormConfig(eps=values["layer_norm_eps"]),
        dropout=values["hidden_dropout_prob"],
        **options,
    )


def read_masked_lm(values: Mapping[str, Any], **options: Any) -> MaskedLMHeadConfig:
    """Return the masked LM head that the settings describe."""
    if values.get("tie_word_embeddings") is False:
        raise ValueError("tie_word_embeddings: false is not supported with a masked LM head")
    return MaskedLMHeadConfig(
        d_model=values["hidden_size"],
        vocab_size=values["vocab_size"],
        activation=read_activation(values, "hidden_act"),
        eps=values["layer_norm_eps"],
        **options,
    )


def write_encoder(encoder: EncoderConfig, *, usual: str = "gelu") -> dict[str, Any]:
    """Return the settings that these read, all but the number of positions."""
    layer: Any = encoder.layer
    embedding: Any = encoder.embedding
    return {
        "attention_probs_dropout_prob": layer.attention.attention_dropout,
        "hidden_act": write_activation(layer.feed_forward.activation, usual),
        "hidden_dropout_prob": layer.dropout,
        "hidden_size": layer.d_model,
        "intermediate_size": layer.feed_forward.d_ff,
        "layer_norm_eps": layer.norm.eps,
        "num_attention_heads": layer.attention.num_heads,
        "num_hidden_layers": encoder.num_layers,
        "type_vocab_size": embedding.num_token_types,
        "vocab_size": embedding.vocab_size,
    }
