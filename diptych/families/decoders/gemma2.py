"""Gemma 2 (Riviere et al. 2024) as ``transformers`` stores it: caps, four norms a layer."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig, ScoreConfig
from .. import transformers_settings as hf
from ..settings import NUMBER, Setting, require
from ..stacks import FULL, SLIDING, read_decoder
from . import parts
from .family import DecoderFamily
from .gemma import GEMMA_DEFAULTS, GEMMA_FIXED, embed_scale

_LAYER = "layers.{i}"
SANDWICH = {
    f"{_LAYER}.input_layernorm": f"{_LAYER}.attention_norm",
    f"{_LAYER}.post_attention_layernorm": f"{_LAYER}.attention_out_norm",
    f"{_LAYER}.pre_feedforward_layernorm": f"{_LAYER}.feed_forward_norm",
    f"{_LAYER}.post_feedforward_layernorm": f"{_LAYER}.feed_forward_out_norm",
}
GEMMA2_SETTINGS = (
    parts.UNDERSTOOD
    | GEMMA_DEFAULTS
    | parts.WINDOWS
    | {
        "attn_logit_softcapping": Setting(NUMBER),
        "final_logit_softcapping": Setting(NUMBER),
        "hidden_activation": Setting(str, "gelu_pytorch_tanh"),
        "query_pre_attn_scalar": Setting(NUMBER, 256, above=0),
        "sliding_window": Setting(int, 4096),
    }
)
del GEMMA2_SETTINGS["hidden_act"]


def read_score(values: dict[str, Any]) -> ScoreConfig:
    """Return how scores are made: a scale of its own, perhaps a cap."""
    return ScoreConfig(
        is_causal=True,
        scale=values["query_pre_attn_scalar"] ** -0.5,
        softcap=values.get("attn_logit_softcapping"),
    )


def write_gemma2(config: DecoderConfig) -> dict[str, Any]:
    """Return the settings of Gemma 2 and 3 but those of the rotation."""
    attention, head = config.layers[0].attention, config.head
    score = attention.score
    width = 1.0 if score.scale is None else score.scale**-2
    whole = round(width)
    settings = parts.write_decoder(config, activation="hidden_activation")
    settings |= parts.write_windows(config)
    settings |= {
        "attention_bias": attention.out_bias,
        "attn_logit_softcapping": score.softcap,
        "query_pre_attn_scalar": whole if whole**-0.5 == score.scale else width,
    }
    return settings | ({} if head is None else {"final_logit_softcapping": head.softcap})


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values, unit_offset=True)
    layer = BlockConfig(
        attention=parts.read_attention(values, score=read_score(values)),
        feed_forward=parts.read_feed_forward(values, activation="hidden_activation"),
        norm=norm,
        norm_placement="sandwich",
    )
    types = [FULL if i % 2 else SLIDING for i in range(require(values, "num_hidden_layers"))]
    layers = [parts.with_window(layer, window) for window in parts.read_windows(values, types)]
    return read_decoder(
        values,
        layers,
        norm=norm,
        embed_scale=embed_scale(values),
        softcap=values["final_logit_softcapping"],
    )


GEMMA2 = DecoderFamily(
    name="gemma2",
    summary="Gemma 2 (Gemma2ForCausalLM, Gemma2Model)",
    model_types=("gemma2",),
    architectures=("Gemma2ForCausalLM", "Gemma2Model"),
    modules=parts.ENDS | parts.ATTENTION | SANDWICH | parts.FEED_FORWARD,
    settings=hf.settings_table(
        GEMMA2_SETTINGS
        | {
            "attn_logit_softcapping": Setting(NUMBER, 50.0, nullable=True),
            "final_logit_softcapping": Setting(NUMBER, 30.0, nullable=True),
        },
        bookkeeping={"hidden_act", "sliding_window_size"},
        fixed=GEMMA_FIXED,
    ),
    sizes=parts.SIZES,
    read=_read,
    write=write_gemma2,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
    linen_norm="weight",
)
