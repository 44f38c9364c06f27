"""Phi-3 (Abdin et al. 2024) as ``transformers`` stores it: q, k, v in one, gate and up in one."""

from collections.abc import Mapping
from typing import Any

from ...rules import Split, Transform
from ...spec import AttentionConfig, BlockConfig, DecoderConfig
from .. import transformers_settings as hf
from ..fused import blocks
from ..modules import Modules
from ..rope import read_rotary
from ..settings import NUMBER, Setting, without
from ..stacks import expect, read_decoder
from . import parts
from .family import DecoderFamily

_LAYER = "layers.{i}"
_QKV, _GATE_UP = f"{_LAYER}.self_attn.qkv_proj", f"{_LAYER}.mlp.gate_up_proj"
_MODULES: Modules = {
    **parts.ENDS,
    **parts.NORMS,
    _QKV: tuple(f"{_LAYER}.attention.{x}_proj" for x in "qkv"),
    f"{_LAYER}.self_attn.o_proj": f"{_LAYER}.attention.out_proj",
    _GATE_UP: (f"{_LAYER}.feed_forward.gate_proj", f"{_LAYER}.feed_forward.up_proj"),
    f"{_LAYER}.mlp.down_proj": f"{_LAYER}.feed_forward.down_proj",
}


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    rotary = read_rotary(values, parts.head_dim(values), partial=1.0)
    layer = BlockConfig(
        attention=parts.read_attention(values, rotary=rotary),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
        dropout=values["resid_pdrop"],
    )
    layer = parts.with_window(layer, values["sliding_window"])
    # transformers keeps embd_pdrop and never applies it.
    return read_decoder(values, layer, norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    settings = parts.write_decoder(config)
    trained = settings["rope_parameters"].get("original_max_position_embeddings")
    return settings | {
        "resid_pdrop": layer.dropout,
        "sliding_window": layer.attention.score.window,
        **({} if trained is None else {"original_max_position_embeddings": trained}),
    }


def _transforms(config: DecoderConfig) -> Mapping[str, Transform]:
    attention = expect(config.layers[0].attention, AttentionConfig)
    return {f"{_QKV}.weight": blocks(attention), f"{_GATE_UP}.weight": Split(2)}


PHI3 = DecoderFamily(
    name="phi3",
    summary="Phi-3, Phi-4 (Phi3ForCausalLM, Phi3Model)",
    model_types=("phi3",),
    architectures=("Phi3ForCausalLM", "Phi3Model"),
    modules=_MODULES,
    settings=hf.settings_table(
        without(parts.UNDERSTOOD, "attention_bias")
        | {
            "max_position_embeddings": Setting(int, 4096),
            "resid_pdrop": Setting(NUMBER, 0.0),
            "rms_norm_eps": Setting(NUMBER, 1e-5),
            "sliding_window": parts.WINDOWS["sliding_window"],
        },
        bookkeeping={"auto_map", "embd_pdrop"},
        fixed={
            "attention_bias": (False,),
            "full_attn_mod": (1,),
            "interpolate_factor": (1,),
            "lm_head_bias": (False, None),
        },
    ),
    sizes={
        "vocab_size": ("embed_tokens.weight", 0),
        "hidden_size": ("embed_tokens.weight", 1),
        "intermediate_size": ("layers.0.mlp.down_proj.weight", 1),
    },
    read=_read,
    write=_write,
    stack_kind=parts.STACK_KIND,
    transforms=_transforms,
    buffers=parts.BUFFERS,
)
