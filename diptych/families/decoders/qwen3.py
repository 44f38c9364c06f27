"""Qwen3 (Yang et al. 2025) as ``transformers`` stores it: queries and keys have norms."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig, QKNormConfig
from .. import transformers_settings as hf
from ..settings import Setting
from ..stacks import read_decoder
from . import parts
from .family import DecoderFamily
from .qwen2 import QWEN_WINDOWS, read_qwen_windows, write_qwen_windows


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    layer = BlockConfig(
        attention=parts.read_attention(values, qk_norm=QKNormConfig(norm=norm)),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
    )
    layers = [parts.with_window(layer, window) for window in read_qwen_windows(values)]
    return read_decoder(values, layers, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    bias = {"attention_bias": config.layers[0].attention.out_bias}
    return parts.write_decoder(config) | write_qwen_windows(config) | bias


QWEN3 = DecoderFamily(
    name="qwen3",
    summary="Qwen3 (Qwen3ForCausalLM, Qwen3Model)",
    model_types=("qwen3",),
    architectures=("Qwen3ForCausalLM", "Qwen3Model"),
    modules=parts.MODULES | parts.QK_NORMS,
    settings=hf.settings_table(
        parts.UNDERSTOOD | QWEN_WINDOWS | {"head_dim": Setting(int, 128)},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
)
