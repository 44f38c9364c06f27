"""Qwen2 and Qwen2.5 (Yang et al. 2024) as ``transformers`` stores it: biases on q, k, v alone."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig
from ..settings import Setting, SettingsTable
from ..stacks import FULL, SLIDING, read_decoder
from ..transformers_settings import BOOKKEEPING, FIXED
from .family import DecoderFamily
from .parts import (
    BUFFERS,
    MODULES,
    SIZES,
    STACK_KIND,
    UNDERSTOOD,
    WINDOWS,
    read_attention,
    read_feed_forward,
    read_norm,
    read_windows,
    with_window,
    write_decoder,
    write_windows,
)

QWEN_WINDOWS = WINDOWS | {
    "max_window_layers": Setting(int, 28),
    "sliding_window": Setting(int, 4096, nullable=True),
    "use_sliding_window": Setting(bool, False),
}


def read_qwen_windows(values: dict[str, Any]) -> list[int | None]:
    """Return every layer's window: where windows are used, the first layers have none."""
    num_layers = values["num_hidden_layers"]
    if not values["use_sliding_window"]:
        return read_windows(values | {"layer_types": None}, [FULL] * num_layers)
    first = values["max_window_layers"]
    return read_windows(values, [FULL if i < first else SLIDING for i in range(num_layers)])


def write_qwen_windows(config: DecoderConfig) -> dict[str, Any]:
    """Return the settings that ``read_qwen_windows`` reads."""
    settings = write_windows(config)
    is_full = [each == FULL for each in settings["layer_types"]]
    return settings | {
        "max_window_layers": is_full.index(False) if False in is_full else config.num_layers,
        "use_sliding_window": not all(is_full),
    }


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = read_norm(values)
    layer = BlockConfig(
        attention=read_attention(values, qkv_bias=True, out_bias=False),
        feed_forward=read_feed_forward(values),
        norm=norm,
    )
    layers = [with_window(layer, window) for window in read_qwen_windows(values)]
    return read_decoder(values, layers, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    return write_decoder(config) | write_qwen_windows(config)


_UNDERSTOOD = {name: setting for name, setting in UNDERSTOOD.items() if name != "attention_bias"}

QWEN2 = DecoderFamily(
    name="qwen2",
    summary="Qwen2, Qwen2.5 (Qwen2ForCausalLM, Qwen2Model)",
    model_types=("qwen2",),
    architectures=("Qwen2ForCausalLM", "Qwen2Model"),
    modules=MODULES,
    settings=SettingsTable(
        understood=_UNDERSTOOD | QWEN_WINDOWS,
        bookkeeping=BOOKKEEPING,
        fixed=FIXED | {"use_mrope": (False,)},
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    buffers=BUFFERS,
)
