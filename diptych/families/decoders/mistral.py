"""Mistral (Jiang et al. 2023) as ``transformers`` stores it: Llama with a window."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig
from ..settings import Setting, SettingsTable
from ..stacks import read_decoder
from ..transformers_settings import BOOKKEEPING, FIXED
from .family import DecoderFamily
from .parts import (
    BUFFERS,
    MODULES,
    SIZES,
    STACK_KIND,
    UNDERSTOOD,
    read_attention,
    read_feed_forward,
    read_norm,
    with_window,
    write_decoder,
)


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = read_norm(values)
    layer = BlockConfig(
        attention=read_attention(values), feed_forward=read_feed_forward(values), norm=norm
    )
    return read_decoder(values, with_window(layer, values["sliding_window"]), norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return write_decoder(config) | {"sliding_window": layer.attention.score.window}


_UNDERSTOOD = {name: setting for name, setting in UNDERSTOOD.items() if name != "attention_bias"}

MISTRAL = DecoderFamily(
    name="mistral",
    summary="Mistral (MistralForCausalLM, MistralModel)",
    model_types=("mistral",),
    architectures=("MistralForCausalLM", "MistralModel"),
    modules=MODULES,
    settings=SettingsTable(
        # A config.json without a window means 4096; null means none, and so it is written.
        understood=_UNDERSTOOD | {"sliding_window": Setting(int, 4096, nullable=True)},
        bookkeeping=BOOKKEEPING,
        fixed=FIXED,
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    buffers=BUFFERS,
    linen_norm="weight",
)
