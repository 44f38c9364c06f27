"""Every component in numpy float64, from its config and its canonical parameters, forward only.

Written from the formulas of the papers; shares no code with a panel. Outputs are nested as the
panels nest theirs.
"""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np

from diptych.spec import Config
from parity_tests.attention.oracle import attention
from parity_tests.components.oracle_attention_modules import (
    block,
    latent_attention,
    multi_head_attention,
)
from parity_tests.components.oracle_encoders import (
    attention_pooling,
    audio_encoder,
    dual_encoder,
    encoder_with_projection,
    patch_embedding,
    vision_encoder,
)
from parity_tests.components.oracle_parts import (
    Tensors,
    feed_forward,
    gated_feed_forward,
    layer_norm,
    linear,
    mixture_of_experts,
    rms_norm,
)
from parity_tests.components.oracle_positions import position_bias
from parity_tests.components.oracle_stacks import (
    decoder,
    encoder,
    encoder_decoder,
    encoder_with_heads,
    logits_head,
    text_embedding,
)


def component(config: Config, tensors: Tensors, *args: Any, **options: Any) -> Any:
    """Compute what the component of a config returns in evaluation mode.

    Args:
        config: Of the component.
        tensors: float64 parameters by canonical name, in torch's shapes.
        args: Positional arguments of the call.
        options: Keyword arguments of the call.
    """
    return _COMPONENTS[config.component](config, tensors, *args, **options)


def _bare_attention(config, tensors, query, key, value, mask=None, **options):
    names = [field.name for field in fields(config.score) if field.name != "sinks"]
    score = {name: getattr(config.score, name) for name in names}
    result = attention(query, key, value, mask=mask, **score, **options)
    return result.output, result.weights


def _head_attention(config, tensors, x, *, need_weights=False):
    query, key, value = (linear(tensors, name, x) for name in ("q_proj", "k_proj", "v_proj"))
    result = attention(query, key, value, is_causal=True)
    return (result.output, result.weights) if need_weights else result.output


def _positional_encoding(config, tensors, x, *, offset=0):
    def at(position: int, column: int) -> float:
        angle = position / 10000.0 ** (2 * (column // 2) / config.d_model)
        return math.cos(angle) if column % 2 else math.sin(angle)

    columns = range(config.d_model)
    rows = range(offset, offset + x.shape[-2])
    return x + np.array([[at(position, column) for column in columns] for position in rows])


def _relative_position_bias(config, tensors, query_positions, key_positions):
    weight = tensors["bias_embed.weight"]
    return position_bias(config, weight, config.num_heads, query_positions, key_positions)


def _embedding(config, tensors, ids):
    return tensors["weight"][ids]


def _encoder_layer(config, tensors, x, mask=None, *, need_weights=False, **options):
    found = block(config, tensors, x, mask, need_weights=True, **options)
    pair = found["output"], found["attention_weights"]
    return pair if need_weights else pair[0]


def _decoder_layer(config, tensors, x, memory, mask=None, *, need_weights=False, **options):
    found = block(config, tensors, x, mask, memory=memory, need_weights=True, **options)
    names = ("output", "attention_weights", "cross_attention_weights")
    return tuple(found[name] for name in names) if need_weights else found["output"]


_COMPONENTS: dict[str, Callable[..., Any]] = {
    "AttentionPooling": attention_pooling,
    "AudioEncoder": audio_encoder,
    "Block": block,
    "Decoder": decoder,
    "DualEncoder": dual_encoder,
    "Embedding": _embedding,
    "Encoder": encoder,
    "EncoderDecoder": encoder_decoder,
    "EncoderWithHeads": encoder_with_heads,
    "EncoderWithProjection": encoder_with_projection,
    "FeedForward": feed_forward,
    "GatedFeedForward": gated_feed_forward,
    "HeadAttention": _head_attention,
    "LatentAttention": latent_attention,
    "LayerNorm": layer_norm,
    "LogitsHead": logits_head,
    "MixtureOfExperts": mixture_of_experts,
    "MultiHeadAttention": multi_head_attention,
    "PatchEmbedding": patch_embedding,
    "PositionalEncoding": _positional_encoding,
    "RMSNorm": rms_norm,
    "RelativePositionBias": _relative_position_bias,
    "ScaledDotProductAttention": _bare_attention,
    "TextEmbedding": text_embedding,
    "TransformerDecoderLayer": _decoder_layer,
    "TransformerEncoderLayer": _encoder_layer,
    "VisionEncoder": vision_encoder,
}
