"""Command R (Cohere 2024) as ``transformers`` stores it: one norm a layer, scaled logits."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig, NormConfig
from .. import transformers_settings as hf
from ..rope import read_rotary
from ..settings import NUMBER, Setting, without
from ..stacks import read_decoder
from . import parts
from .family import DecoderFamily

_NORM = {"layers.{i}.input_layernorm": "layers.{i}.attention_norm"}
_THETA = 10000.0


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = NormConfig(eps=values["layer_norm_eps"], bias=False)
    rotary = read_rotary(values, parts.head_dim(values), theta=_THETA, interleaved=True)
    layer = BlockConfig(
        attention=parts.read_attention(values, rotary=rotary),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
        norm_placement="parallel_shared",
    )
    return read_decoder(values, layer, norm=norm, scale=values["logit_scale"])


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    settings = parts.write_decoder(config) | {"attention_bias": layer.attention.out_bias}
    settings["layer_norm_eps"] = settings.pop("rms_norm_eps")
    del settings["head_dim"]  # transformers derives it
    return settings | ({} if config.head is None else {"logit_scale": config.head.scale})


COHERE = DecoderFamily(
    name="cohere",
    summary="Command R (CohereForCausalLM, CohereModel), without norms of queries and keys",
    model_types=("cohere",),
    architectures=("CohereForCausalLM", "CohereModel"),
    modules=parts.ENDS | parts.ATTENTION | _NORM | parts.FEED_FORWARD,
    settings=hf.settings_table(
        without(parts.UNDERSTOOD, "rms_norm_eps")
        | {
            "layer_norm_eps": Setting(NUMBER, 1e-5),
            "logit_scale": Setting(NUMBER, 0.0625),
            "max_position_embeddings": Setting(int, 8192),
            "tie_word_embeddings": Setting(bool, True),
        },
        bookkeeping={"model_max_length"},
        fixed={"use_qk_norm": (False,)},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
)
