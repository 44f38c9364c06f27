"""StarCoder 2 (Lozhkov et al. 2024) as ``transformers`` stores it: layer norms, a plain network."""

from typing import Any

from ... import spec
from .. import transformers_settings as hf
from ..settings import NUMBER, Setting, require, without
from ..stacks import StackKind, expect, read_decoder
from . import parts
from .family import DecoderFamily

_LAYER = "layers.{i}"
_FEED_FORWARD = {
    f"{_LAYER}.mlp.c_fc": f"{_LAYER}.feed_forward.up_proj",
    f"{_LAYER}.mlp.c_proj": f"{_LAYER}.feed_forward.down_proj",
}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    norm = spec.NormConfig(eps=values["norm_epsilon"])
    bias = values["use_bias"]
    layer = spec.BlockConfig(
        attention=parts.read_attention(values, qkv_bias=bias, out_bias=bias),
        feed_forward=spec.FeedForwardConfig(
            d_model=values["hidden_size"],
            d_ff=require(values, "intermediate_size"),
            activation=hf.read_activation(values, "hidden_act"),
            bias=bias,
        ),
        norm=norm,
        dropout=values["residual_dropout"],
    )
    layer = parts.with_window(layer, values["sliding_window"])
    return read_decoder(values, layer, norm=norm, embed_dropout=values["embedding_dropout"])


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    embedding = expect(config.embedding, spec.TextEmbeddingConfig)
    settings = parts.write_decoder(config)
    settings["norm_epsilon"] = settings.pop("rms_norm_eps")
    return settings | {
        "embedding_dropout": embedding.dropout,
        "residual_dropout": layer.dropout,
        "sliding_window": layer.attention.score.window,
        "use_bias": layer.attention.out_bias,
    }


STARCODER2 = DecoderFamily(
    name="starcoder2",
    summary="StarCoder 2 (Starcoder2ForCausalLM, Starcoder2Model)",
    model_types=("starcoder2",),
    architectures=("Starcoder2ForCausalLM", "Starcoder2Model"),
    modules=parts.ENDS | parts.ATTENTION | parts.NORMS | _FEED_FORWARD,
    settings=hf.settings_table(
        without(parts.UNDERSTOOD, "attention_bias", "rms_norm_eps")
        | {
            "embedding_dropout": Setting(NUMBER, 0.0),
            "hidden_act": Setting(str, "gelu_pytorch_tanh"),
            "max_position_embeddings": Setting(int, 4096),
            "norm_epsilon": Setting(NUMBER, 1e-5),
            "residual_dropout": Setting(NUMBER, 0.0),
            "sliding_window": parts.WINDOWS["sliding_window"],
            "tie_word_embeddings": Setting(bool, True),
            "use_bias": Setting(bool, True),
        },
        bookkeeping={
            "activation_function",
            "attention_softmax_in_fp32",
            "mlp_type",
            "norm_type",
            "scale_attention_softmax_in_fp32",
            "scale_attn_weights",
        },
    ),
    sizes={
        "vocab_size": ("embed_tokens.weight", 0),
        "hidden_size": ("embed_tokens.weight", 1),
        "intermediate_size": ("layers.0.mlp.c_fc.weight", 0),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(rotary=spec.RotaryConfig, feed_forward=spec.FeedForwardConfig),
    buffers=parts.BUFFERS,
)
