"""Gemma (Mesnard et al. 2024) as ``transformers`` stores it: norms by 1 + w, scaled embeddings."""

from collections.abc import Mapping
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
    write_decoder,
)

GEMMA_FIXED = FIXED | {"use_bidirectional_attention": (False, None)}
GEMMA_DEFAULTS = {
    "head_dim": Setting(int, 256),
    "max_position_embeddings": Setting(int, 8192),
    "tie_word_embeddings": Setting(bool, True),
}


def embed_scale(values: Mapping[str, Any]) -> float:
    """Return the factor on token vectors."""
    return values["hidden_size"] ** 0.5


def _read(values: dict[str, Any]) -> DecoderConfig:
    # Old files say "gelu" and mean its tanh form, as transformers knows too.
    act = values["hidden_activation"] or values["hidden_act"]
    values = {**values, "hidden_act": "gelu_pytorch_tanh" if act == "gelu" else act}
    norm = read_norm(values, unit_offset=True)
    layer = BlockConfig(
        attention=read_attention(values), feed_forward=read_feed_forward(values), norm=norm
    )
    return read_decoder(values, layer, norm=norm, embed_scale=embed_scale(values))


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    bias = {"attention_bias": layer.attention.out_bias}
    settings = write_decoder(config) | bias
    return settings | {"hidden_activation": settings["hidden_act"]}


GEMMA = DecoderFamily(
    name="gemma",
    summary="Gemma (GemmaForCausalLM, GemmaModel)",
    model_types=("gemma",),
    architectures=("GemmaForCausalLM", "GemmaModel"),
    modules=MODULES,
    settings=SettingsTable(
        understood=UNDERSTOOD
        | GEMMA_DEFAULTS
        | {
            "hidden_act": Setting(str, "gelu_pytorch_tanh"),
            "hidden_activation": Setting(str),
        },
        bookkeeping=BOOKKEEPING,
        fixed=GEMMA_FIXED,
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    buffers=BUFFERS,
    linen_norm="weight",
)
