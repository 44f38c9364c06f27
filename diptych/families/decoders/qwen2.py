"""Qwen2 and Qwen2.5 (Yang et al. 2024) as ``transformers`` stores it: biases on q, k, v alone."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig
from .. import transformers_settings as hf
from ..settings import Setting, require, without
from ..stacks import FULL, SLIDING, read_decoder
from . import parts
from .family import DecoderFamily

QWEN_WINDOWS = parts.WINDOWS | {
    "max_window_layers": Setting(int, 28),
    "sliding_window": Setting(int, 4096, nullable=True),
    "use_sliding_window": Setting(bool, False),
}


def read_qwen_windows(values: dict[str, Any]) -> list[int | None]:
    """Return every layer's window: where windows are used, the first layers have none."""
    num_layers = require(values, "num_hidden_layers")
    if not values["use_sliding_window"]:
        return parts.read_windows(values | {"layer_types": None}, [FULL] * num_layers)
    first = values["max_window_layers"]
    return parts.read_windows(values, [FULL if i < first else SLIDING for i in range(num_layers)])


def write_qwen_windows(config: DecoderConfig) -> dict[str, Any]:
    """Return the settings that ``read_qwen_windows`` reads."""
    settings = parts.write_windows(config)
    is_full = [each == FULL for each in settings["layer_types"]]
    return settings | {
        "max_window_layers": is_full.index(False) if False in is_full else config.num_layers,
        "use_sliding_window": not all(is_full),
    }


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    layer = BlockConfig(
        attention=parts.read_attention(values, qkv_bias=True, out_bias=False),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
    )
    layers = [parts.with_window(layer, window) for window in read_qwen_windows(values)]
    return read_decoder(values, layers, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    return parts.write_decoder(config) | write_qwen_windows(config)


QWEN2 = DecoderFamily(
    name="qwen2",
    summary="Qwen2, Qwen2.5 (Qwen2ForCausalLM, Qwen2Model)",
    model_types=("qwen2",),
    architectures=("Qwen2ForCausalLM", "Qwen2Model"),
    modules=parts.MODULES,
    settings=hf.settings_table(
        without(parts.UNDERSTOOD, "attention_bias") | QWEN_WINDOWS,
        fixed={"use_mrope": (False,)},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
)
