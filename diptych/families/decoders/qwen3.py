"""Qwen3 (Yang et al. 2025) as ``transformers`` stores it: queries and keys have norms."""

from typing import Any

from ...spec import AttentionConfig, BlockConfig, DecoderConfig, QKNormConfig
from ..settings import Setting, SettingsTable
from ..stacks import expect, read_decoder
from ..transformers_settings import BOOKKEEPING, FIXED
from .family import DecoderFamily
from .parts import (
    BUFFERS,
    MODULES,
    QK_NORMS,
    SIZES,
    STACK_KIND,
    UNDERSTOOD,
    read_attention,
    read_feed_forward,
    read_norm,
    with_window,
    write_decoder,
)
from .qwen2 import QWEN_WINDOWS, read_qwen_windows, write_qwen_windows


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = read_norm(values)
    layer = BlockConfig(
        attention=read_attention(values, qk_norm=QKNormConfig(norm=norm)),
        feed_forward=read_feed_forward(values),
        norm=norm,
    )
    layers = [with_window(layer, window) for window in read_qwen_windows(values)]
    return read_decoder(values, layers, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    attention = expect(config.layers[0].attention, AttentionConfig)
    bias = {"attention_bias": attention.out_bias}
    return write_decoder(config) | write_qwen_windows(config) | bias


QWEN3 = DecoderFamily(
    name="qwen3",
    summary="Qwen3 (Qwen3ForCausalLM, Qwen3Model)",
    model_types=("qwen3",),
    architectures=("Qwen3ForCausalLM", "Qwen3Model"),
    modules=MODULES | QK_NORMS,
    settings=SettingsTable(
        understood=UNDERSTOOD | QWEN_WINDOWS | {"head_dim": Setting(int, 128)},
        bookkeeping=BOOKKEEPING,
        fixed=FIXED,
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    buffers=BUFFERS,
)
