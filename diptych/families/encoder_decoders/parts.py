"""What BART and Whisper have in common: the names in their layers, and how these are read."""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...spec.stack import StackConfig
from .. import transformers_settings as hf
from ..settings import NUMBER, SIZE, Setting, require
from ..stacks import StackKind, expect
from .family import Size

_PARTS = {
    "self_attn_layer_norm": "attention_norm",
    "encoder_attn_layer_norm": "cross_attention_norm",
    "final_layer_norm": "feed_forward_norm",
    "fc1": "feed_forward.up_proj",
    "fc2": "feed_forward.down_proj",
}
_PARTS |= {
    f"{theirs}.{proj}": f"{ours}.{proj}"
    for theirs, ours in {"self_attn": "attention", "encoder_attn": "cross_attention"}.items()
    for proj in ("q_proj", "k_proj", "v_proj", "out_proj")
}
LAYERS = {
    f"{stack}.layers.{{i}}.{theirs}": f"{stack}.layers.{{i}}.{ours}"
    for stack in ("encoder", "decoder")
    for theirs, ours in _PARTS.items()
    if stack == "decoder" or not theirs.startswith("encoder_attn")
}
LAYER_SIZES = {
    "encoder_ffn_dim": Size("encoder.layers.0.fc1.weight", 0),
    "decoder_ffn_dim": Size("decoder.layers.0.fc1.weight", 0),
}
LAYER_COUNTS = {"encoder.layers": "encoder_layers", "decoder.layers": "decoder_layers"}
UNDERSTOOD = {
    **hf.ARCHITECTURES,
    "activation_function": Setting(str, "gelu"),
    "attention_dropout": Setting(NUMBER, 0.0),
    "d_model": SIZE,
    "decoder_attention_heads": SIZE,
    "decoder_ffn_dim": SIZE,
    "decoder_layers": SIZE,
    "encoder_attention_heads": SIZE,
    "encoder_ffn_dim": SIZE,
    "encoder_layers": SIZE,
    "vocab_size": SIZE,
}
STACK_KIND = StackKind(feed_forward=spec.FeedForwardConfig)
ALIASES = frozenset({"num_hidden_layers"})
"""Other names of settings that say what the encoder's own say; files hold both."""

TRAINING = frozenset(
    {"activation_dropout", "decoder_layerdrop", "encoder_layerdrop", "init_std", "layerdrop"}
)
"""Settings of training alone, not carried over."""


def read_layer(
    values: Mapping[str, Any],
    stack: str,
    *,
    norm_placement: str,
    qkv_bias: bool | tuple[bool, bool, bool] = True,
) -> spec.BlockConfig:
    """Return a layer of one half.

    Args:
        values: Settings of ``UNDERSTOOD``, and ``dropout``.
        stack: "encoder" or "decoder".
        norm_placement: Where its norms stand.
        qkv_bias: Which of the projections have a bias.
    """
    d_model, is_decoder = require(values, "d_model"), stack == "decoder"

    def attention(is_causal: bool) -> spec.AttentionConfig:
        return spec.AttentionConfig(
            d_model=d_model,
            num_heads=require(values, f"{stack}_attention_heads"),
            qkv_bias=qkv_bias,
            attention_dropout=values["attention_dropout"],
            score=spec.ScoreConfig(is_causal=is_causal),
        )

    return spec.BlockConfig(
        attention=attention(is_decoder),
        feed_forward=spec.FeedForwardConfig(
            d_model=d_model,
            d_ff=require(values, f"{stack}_ffn_dim"),
            activation=hf.read_activation(values, "activation_function"),
        ),
        norm=spec.NormConfig(),
        norm_placement=norm_placement,
        cross_attention=attention(False) if is_decoder else None,
        dropout=values["dropout"],
    )


def write_layers(
    encoder: spec.EncoderConfig | spec.AudioEncoderConfig, decoder: spec.DecoderConfig
) -> dict[str, Any]:
    """Return the settings that ``read_layer`` reads."""
    layer = encoder.layers[0]
    settings = {
        "activation_function": hf.write_activation(layer.feed_forward.activation),
        "attention_dropout": layer.attention.attention_dropout,
        "d_model": encoder.d_model,
        "dropout": layer.dropout,
        "vocab_size": expect(decoder.embedding, spec.TextEmbeddingConfig).vocab_size,
    }
    stacks: dict[str, StackConfig] = {"encoder": encoder, "decoder": decoder}
    for name, stack in stacks.items():
        settings |= {
            f"{name}_attention_heads": stack.layers[0].attention.num_heads,
            f"{name}_ffn_dim": stack.layers[0].feed_forward.d_ff,
            f"{name}_layers": stack.num_layers,
        }
    return settings
