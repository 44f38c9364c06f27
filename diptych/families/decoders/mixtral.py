"""Mixtral (Jiang et al. 2024) as ``transformers`` stores it: ``w1`` gates, ``w3`` is up."""

from typing import Any

from ...rules import Rule
from ...spec import BlockConfig, DecoderConfig, MixtureOfExpertsConfig, RotaryConfig, RouterConfig
from .. import transformers_settings as hf
from ..experts import expert_rules
from ..settings import NUMBER, SIZE, Setting, require, without
from ..stacks import StackKind, expect, read_decoder
from . import parts
from .family import DecoderFamily

_MIXTURE, _OURS = "layers.{i}.block_sparse_moe", "layers.{i}.feed_forward"
_BANKS = (("w1", "gate_param"), ("w3", "up_param"), ("w2", "down_param"))


def _read(values: dict[str, Any]) -> DecoderConfig:
    norm = parts.read_norm(values)
    layer = BlockConfig(
        attention=parts.read_attention(values),
        feed_forward=MixtureOfExpertsConfig(
            d_model=values["hidden_size"],
            d_ff=require(values, "intermediate_size"),
            num_experts=require(values, "num_local_experts"),
            top_k=values["num_experts_per_tok"],
            activation=hf.read_activation(values, "hidden_act"),
            router=RouterConfig(scoring="softmax", normalize=True),
        ),
        norm=norm,
    )
    return read_decoder(values, parts.with_window(layer, values["sliding_window"]), norm=norm)


def _write(config: DecoderConfig) -> dict[str, Any]:
    layer = config.layers[0]
    mixture = expect(layer.feed_forward, MixtureOfExpertsConfig)
    return parts.write_decoder(config) | {
        "num_experts_per_tok": mixture.top_k,
        "num_local_experts": mixture.num_experts,
        "sliding_window": layer.attention.score.window,
    }


def _experts(config: DecoderConfig, prefix: str) -> list[Rule]:
    number = expect(config.layers[0].feed_forward, MixtureOfExpertsConfig).num_experts
    return expert_rules(f"{prefix}{_MIXTURE}.experts", _OURS, _BANKS, number, config.leaves())


MIXTRAL = DecoderFamily(
    name="mixtral",
    summary="Mixtral (MixtralForCausalLM, MixtralModel)",
    model_types=("mixtral",),
    architectures=("MixtralForCausalLM", "MixtralModel"),
    modules=parts.ENDS
    | parts.ATTENTION
    | parts.NORMS
    | {f"{_MIXTURE}.gate": f"{_OURS}.router_proj"},
    extra_rules=_experts,
    extra_names=tuple(f"{_MIXTURE}.experts.{{j}}.{name}.weight" for name, _ in _BANKS),
    settings=hf.settings_table(
        without(parts.UNDERSTOOD, "attention_bias")
        | {
            "num_experts_per_tok": Setting(int, 2),
            "num_local_experts": SIZE,
            "rms_norm_eps": Setting(NUMBER, 1e-5),
            "sliding_window": parts.WINDOWS["sliding_window"],
        },
        bookkeeping={"output_router_logits", "router_aux_loss_coef", "router_jitter_noise"},
    ),
    sizes={
        "vocab_size": ("embed_tokens.weight", 0),
        "hidden_size": ("embed_tokens.weight", 1),
        "intermediate_size": ("layers.0.block_sparse_moe.experts.0.w1.weight", 0),
        "num_local_experts": ("layers.0.block_sparse_moe.gate.weight", 0),
    },
    experts=("num_local_experts",),
    read=_read,
    write=_write,
    stack_kind=StackKind(rotary=RotaryConfig, feed_forward=MixtureOfExpertsConfig),
    buffers=parts.BUFFERS,
)
