"""OLMo 2 (Walsh et al. 2025) as ``transformers`` stores it: norms after the branches."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig, QKNormConfig
from ..settings import Setting, SettingsTable
from ..stacks import read_decoder
from ..transformers_settings import BOOKKEEPING, FIXED, NUMBER
from .family import DecoderFamily
from .parts import (
    ATTENTION,
    BUFFERS,
    ENDS,
    FEED_FORWARD,
    QK_NORMS,
    SIZES,
    STACK_KIND,
    UNDERSTOOD,
    read_attention,
    read_feed_forward,
    read_norm,
    write_decoder,
)

_NORMS = {
    "layers.{i}.post_attention_layernorm": "layers.{i}.attention_norm",
    "layers.{i}.post_feedforward_layernorm": "layers.{i}.feed_forward_norm",
}


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = read_norm(values)
    layer = BlockConfig(
        attention=read_attention(values, qk_norm=QKNormConfig(norm=norm, over="width")),
        feed_forward=read_feed_forward(values),
        norm=norm,
        norm_placement="branch",
    )
    return read_decoder(values, layer, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return write_decoder(config) | {"attention_bias": layer.attention.out_bias}


OLMO2 = DecoderFamily(
    name="olmo2",
    summary="OLMo 2 (Olmo2ForCausalLM, Olmo2Model)",
    model_types=("olmo2",),
    architectures=("Olmo2ForCausalLM", "Olmo2Model"),
    modules=ENDS | ATTENTION | QK_NORMS | _NORMS | FEED_FORWARD,
    settings=SettingsTable(
        understood=UNDERSTOOD | {"rms_norm_eps": Setting(NUMBER, 1e-5)},
        bookkeeping=BOOKKEEPING,
        fixed=FIXED | {"clip_qkv": (None,)},
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    buffers=BUFFERS,
)
