"""Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024) as ``transformers`` stores it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...rules import Permute, Transform
from ...spec import AttentionConfig, BlockConfig, DecoderConfig, RotaryConfig
from .. import transformers_settings as hf
from ..fused import both_parts
from ..settings import Setting
from ..stacks import expect, read_decoder, shortest_cycle
from . import parts
from .family import DecoderFamily


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    layer = BlockConfig(
        attention=parts.read_attention(values),
        feed_forward=parts.read_feed_forward(values, bias=values["mlp_bias"]),
        norm=norm,
    )
    return read_decoder(values, layer, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    biases = {"attention_bias": layer.attention.out_bias, "mlp_bias": layer.feed_forward.bias}
    return parts.write_decoder(config) | biases


def _canonicalise(config: DecoderConfig) -> DecoderConfig:
    """Return the config with halves rotated, as ``transformers`` does."""
    layers = []
    for layer in config.layers:
        rotary = expect(layer.attention.rotary, RotaryConfig)
        attention = replace(layer.attention, rotary=replace(rotary, interleaved=False))
        layers.append(replace(layer, attention=attention))
    return replace(config, layer=shortest_cycle(layers))


def _transforms(config: DecoderConfig) -> Mapping[str, Transform]:
    """Return the way from halves to neighbours, for weights of an interleaved rotation."""
    attention = expect(config.layers[0].attention, AttentionConfig)
    if not expect(attention.rotary, RotaryConfig).interleaved:
        return {}
    num_heads, num_kv_heads, width = attention.sizes
    found: dict[str, Transform] = {}
    for letter, heads in (("q", num_heads), ("k", num_kv_heads)):
        way = to_neighbours(heads, width)
        found |= both_parts(f"layers.{{i}}.self_attn.{letter}_proj", way)
    return found


def to_neighbours(num_heads: int, width: int) -> Permute:
    """Put the two halves of every head in turns."""
    half = width // 2
    channels = [side * half + i for i in range(half) for side in range(2)]
    return Permute(tuple(head * width + c for head in range(num_heads) for c in channels))


LLAMA = DecoderFamily(
    name="llama",
    summary="Llama 1, 2, 3 and what copies it (LlamaForCausalLM, LlamaModel)",
    model_types=("llama",),
    architectures=("LlamaForCausalLM", "LlamaModel"),
    modules=parts.MODULES,
    settings=hf.settings_table(
        parts.UNDERSTOOD | {"mlp_bias": Setting(bool, False)},
        bookkeeping={"max_sequence_length"},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    transforms=_transforms,
    canonicalise=_canonicalise,
    buffers=parts.BUFFERS,
    linen_norm="weight",
)
