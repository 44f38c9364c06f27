"""OLMo 2 (Walsh et al. 2025) as ``transformers`` stores it: norms after the branches."""

from typing import Any

from ...spec import BlockConfig, DecoderConfig, QKNormConfig
from .. import transformers_settings as hf
from ..settings import NUMBER, Setting
from ..stacks import read_decoder
from . import parts
from .family import DecoderFamily

_NORMS = {
    "layers.{i}.post_attention_layernorm": "layers.{i}.attention_norm",
    "layers.{i}.post_feedforward_layernorm": "layers.{i}.feed_forward_norm",
}


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    layer = BlockConfig(
        attention=parts.read_attention(values, qk_norm=QKNormConfig(norm=norm, over="width")),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
        norm_placement="branch",
    )
    return read_decoder(values, layer, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    return parts.write_decoder(config) | {"attention_bias": layer.attention.out_bias}


OLMO2 = DecoderFamily(
    name="olmo2",
    summary="OLMo 2 (Olmo2ForCausalLM, Olmo2Model)",
    model_types=("olmo2",),
    architectures=("Olmo2ForCausalLM", "Olmo2Model"),
    modules=parts.ENDS | parts.ATTENTION | parts.QK_NORMS | _NORMS | parts.FEED_FORWARD,
    settings=hf.settings_table(
        parts.UNDERSTOOD | {"rms_norm_eps": Setting(NUMBER, 1e-5)},
        fixed={"clip_qkv": (None,)},
    ),
    sizes=parts.SIZES,
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    buffers=parts.BUFFERS,
)
