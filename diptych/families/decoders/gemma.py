"""Gemma (Mesnard et al. 2024) as ``transformers`` stores it: norms by 1 + w, scaled embeddings."""

from collections.abc import Mapping
from typing import Any

from ...spec import BlockConfig, DecoderConfig
from .. import transformers_settings as hf
from ..settings import Setting
from ..stacks import read_decoder
from . import parts
from .family import DecoderFamily

GEMMA_FIXED = {"use_bidirectional_attention": (False, None)}
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
    norm = parts.read_norm(values, unit_offset=True)
    layer = BlockConfig(
        attention=parts.read_attention(values),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
    )
    return read_decoder(values, layer, norm=norm, embed_scale=embed_scale(values))


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    bias = {"attention_bias": layer.attention.out_bias}
    settings = parts.write_decoder(config) | bias
    return settings | {"hidden_activation": settings["hidden_act"]}


GEMMA = DecoderFamily(
    name="gemma",
    summary="Gemma (GemmaForCausalLM, GemmaModel)",
    model_types=("gemma",),
    architectures=("GemmaForCausalLM", "GemmaModel"),
    modules=parts.MODULES,
    settings=hf.settings_table(
        parts.UNDERSTOOD
        | GEMMA_DEFAULTS
        | {
            "hidden_act": Setting(str, "gelu_pytorch_tanh"),
            "hidden_activation": Setting(str),
        },
        fixed=GEMMA_FIXED,
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
    linen_norm="weight",
)
