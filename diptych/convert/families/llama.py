"""Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024) as ``transformers`` stores it."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig
from ..settings import Setting, SettingsTable
from .common import BOOKKEEPING, FIXED
from .decoder import DecoderFamily
from .llama_like import (
    BUFFERS,
    MODULES,
    SIZES,
    UNDERSTOOD,
    read_attention,
    read_decoder,
    read_feed_forward,
    read_norm,
    write_decoder,
)


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = read_norm(values)
    layer = BlockConfig(
        attention=read_attention(values),
        feed_forward=read_feed_forward(values, bias=values["mlp_bias"]),
        norm=norm,
    )
    return read_decoder(values, layer, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer: Any = config.layer
    biases = {"attention_bias": layer.attention.out_bias, "mlp_bias": layer.feed_forward.bias}
    return write_decoder(config) | biases


LLAMA = DecoderFamily(
    name="llama",
    summary="Llama 1, 2, 3 and what copies it (LlamaForCausalLM, LlamaModel)",
    model_types=("llama",),
    architectures=("LlamaForCausalLM", "LlamaModel"),
    modules=MODULES,
    settings=SettingsTable(
        understood=UNDERSTOOD | {"mlp_bias": Setting(bool, False)},
        bookkeeping=BOOKKEEPING,
        fixed=FIXED,
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    buffers=BUFFERS,
    linen_norm="weight",
).family
