"""Command R (Cohere 2024) as ``transformers`` stores it: one norm a layer, scaled logits."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig, NormConfig
from ..rope import read_rotary
from ..settings import Setting, SettingsTable
from ..stacks import read_decoder
from ..transformers_settings import BOOKKEEPING, FIXED, NUMBER
from .family import DecoderFamily
from .parts import (
    ATTENTION,
    BUFFERS,
    ENDS,
    FEED_FORWARD,
    SIZES,
    STACK_KIND,
    UNDERSTOOD,
    head_dim,
    read_attention,
    read_feed_forward,
    write_decoder,
)

_NORM = {"layers.{i}.input_layernorm": "layers.{i}.attention_norm"}
_THETA = 10000.0


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = NormConfig(eps=values["layer_norm_eps"], bias=False)
    rotary = read_rotary(values, head_dim(values), theta=_THETA, interleaved=True)
    layer = BlockConfig(
        attention=read_attention(values, rotary=rotary),
        feed_forward=read_feed_forward(values),
        norm=norm,
        norm_placement="parallel_shared",
    )
    return read_decoder(values, layer, norm=norm, scale=values["logit_scale"])


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    settings = write_decoder(config) | {"attention_bias": layer.attention.out_bias}
    settings["layer_norm_eps"] = settings.pop("rms_norm_eps")
    del settings["head_dim"]  # transformers derives it
    return settings | ({} if config.head is None else {"logit_scale": config.head.scale})


_UNDERSTOOD = {name: setting for name, setting in UNDERSTOOD.items() if name != "rms_norm_eps"}

COHERE = DecoderFamily(
    name="cohere",
    summary="Command R (CohereForCausalLM, CohereModel), without norms of queries and keys",
    model_types=("cohere",),
    architectures=("CohereForCausalLM", "CohereModel"),
    modules=ENDS | ATTENTION | _NORM | FEED_FORWARD,
    settings=SettingsTable(
        understood=_UNDERSTOOD
        | {
            "layer_norm_eps": Setting(NUMBER, 1e-5),
            "logit_scale": Setting(NUMBER, 0.0625),
            "max_position_embeddings": Setting(int, 8192),
            "tie_word_embeddings": Setting(bool, True),
        },
        bookkeeping=BOOKKEEPING | {"model_max_length"},
        fixed=FIXED | {"use_qk_norm": (False,)},
    ),
    sizes=SIZES,
    read=_read,
    write=_write,
    stack_kind=STACK_KIND,
    buffers=BUFFERS,
)
