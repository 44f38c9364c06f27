"""Mistral (Jiang et al. 2023) as ``transformers`` stores it: Llama with a window."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig
from .. import transformers_settings as hf
from ..settings import Setting, without
from ..stacks import read_decoder
from . import parts
from .family import DecoderFamily


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    layer = BlockConfig(
        attention=parts.read_attention(values),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
    )
    return read_decoder(values, parts.with_window(layer, values["sliding_window"]), norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return parts.write_decoder(config) | {"sliding_window": layer.attention.score.window}


MISTRAL = DecoderFamily(
    name="mistral",
    summary="Mistral (MistralForCausalLM, MistralModel)",
    model_types=("mistral",),
    architectures=("MistralForCausalLM", "MistralModel"),
    modules=parts.MODULES,
    settings=hf.settings_table(
        # A config.json without a window means 4096; null means none, and so it is written.
        without(parts.UNDERSTOOD, "attention_bias")
        | {"sliding_window": Setting(int, 4096, nullable=True)},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
    linen_norm="weight",
)
