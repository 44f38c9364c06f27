"""gpt-oss (OpenAI 2025) as ``transformers`` stores it, not quantised: sinks, gates between ups.

Experts are banks (E, in, out); of the hidden channels of ``gate_up_proj`` the even ones gate.
"""

from collections.abc import Mapping
from typing import Any

from ... import spec
from ...rules import Chain, Permute, Split, Transform
from .. import transformers_settings as hf
from ..modules import Modules
from ..rope import read_rotary
from ..settings import NUMBER, SIZE, Setting, require, without
from ..stacks import FULL, SLIDING, StackKind, expect, read_decoder
from . import parts
from .family import DecoderFamily

_MIXTURE, _OURS = "layers.{i}.mlp", "layers.{i}.feed_forward"
_BANKS: Modules = {
    f"{_MIXTURE}.router": f"{_OURS}.router_proj",
    f"{_MIXTURE}.experts.gate_up_proj": (
        f"{_OURS}.experts.gate_param",
        f"{_OURS}.experts.up_param",
    ),
    f"{_MIXTURE}.experts.gate_up_proj_bias": (
        f"{_OURS}.experts.gate_bias_param",
        f"{_OURS}.experts.up_bias_param",
    ),
    f"{_MIXTURE}.experts.down_proj": f"{_OURS}.experts.down_param",
    f"{_MIXTURE}.experts.down_proj_bias": f"{_OURS}.experts.down_bias_param",
}
_SINKS: Modules = {"layers.{i}.self_attn.sinks": "layers.{i}.attention.sinks_param"}


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    norm = parts.read_norm(values)
    if not values["rope_parameters"] and not values["rope_scaling"]:
        require(values | {"rope_parameters": None}, "rope_parameters")
    experts = [values[key] for key in ("num_experts_per_tok", "experts_per_token")]
    rotary = read_rotary(values, parts.head_dim(values), theta=150000.0)
    layer = spec.BlockConfig(
        attention=parts.read_attention(
            values, score=spec.ScoreConfig(is_causal=True, sinks=True), rotary=rotary
        ),
        feed_forward=spec.MixtureOfExpertsConfig(
            d_model=values["hidden_size"],
            d_ff=require(values, "intermediate_size"),
            num_experts=require(values, "num_local_experts"),
            top_k=next((number for number in experts if number is not None), 4),
            activation="clamped_swiglu",
            bias=True,
            router=spec.RouterConfig(scoring="softmax_of_top", bias=True),
        ),
        norm=norm,
    )
    types = [FULL if i % 2 else SLIDING for i in range(require(values, "num_hidden_layers"))]
    layers = [parts.with_window(layer, window) for window in parts.read_windows(values, types)]
    return read_decoder(values, layers, norm=norm)


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    mixture = expect(layer.feed_forward, spec.MixtureOfExpertsConfig)
    if mixture.activation != "clamped_swiglu":
        raise ValueError(f"activation={mixture.activation!r}, only 'clamped_swiglu'")
    return {
        "attention_bias": layer.attention.out_bias,
        "num_experts_per_tok": mixture.top_k,
        "num_local_experts": mixture.num_experts,
        **parts.write_decoder(config, activation=None),
        **parts.write_windows(config),
    }


def _transforms(config: spec.DecoderConfig) -> Mapping[str, Transform]:
    mixture = expect(config.layers[0].feed_forward, spec.MixtureOfExpertsConfig)
    order = (*range(0, 2 * mixture.d_ff, 2), *range(1, 2 * mixture.d_ff, 2))
    apart = Chain((Permute(order, -1), Split(2, -1)))
    name = f"{_MIXTURE}.experts.gate_up_proj"
    return {name: apart, f"{name}_bias": apart}


GPT_OSS = DecoderFamily(
    name="gpt_oss",
    summary="gpt-oss, dequantised (GptOssForCausalLM, GptOssModel)",
    model_types=("gpt_oss",),
    architectures=("GptOssForCausalLM", "GptOssModel"),
    modules={**parts.ENDS, **parts.ATTENTION, **parts.NORMS, **_SINKS, **_BANKS},
    settings=hf.settings_table(
        without(parts.UNDERSTOOD, "hidden_act")
        | parts.WINDOWS
        | {
            "attention_bias": Setting(bool, True),
            "experts_per_token": Setting(int),
            "max_position_embeddings": Setting(int, 131072),
            "num_experts_per_tok": Setting(int),
            "num_local_experts": SIZE,
            "rms_norm_eps": Setting(NUMBER, 1e-5),
            "sliding_window": Setting(int, 128),
        },
        bookkeeping={
            "initial_context_length",
            "output_router_logits",
            "router_aux_loss_coef",
        },
        fixed={"hidden_act": ("silu",), "swiglu_alpha": (1.702,), "swiglu_limit": (7.0,)},
    ),
    sizes={
        "vocab_size": ("embed_tokens.weight", 0),
        "hidden_size": ("embed_tokens.weight", 1),
        "intermediate_size": ("layers.0.mlp.experts.down_proj", 1),
        "num_local_experts": ("layers.0.mlp.experts.down_proj", 0),
    },
    read=_read,
    write=_write,
    stack_kind=StackKind(rotary=spec.RotaryConfig, feed_forward=spec.MixtureOfExpertsConfig),
    transforms=_transforms,
    buffers=parts.BUFFERS,
)
