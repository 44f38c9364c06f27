"""Qwen3's mixtures (Yang et al. 2025) as ``transformers`` stores it."""

from dataclasses import replace
from typing import Any

from ... import spec
from ...rules import Rule
from .. import transformers_settings as hf
from ..experts import expert_rules
from ..settings import SIZE, Setting, require
from ..stacks import StackKind, expect, read_decoder
from . import parts
from .family import DecoderFamily

_MIXTURE, _OURS = "layers.{i}.mlp", "layers.{i}.feed_forward"
_BANKS = (("gate_proj", "gate_param"), ("up_proj", "up_param"), ("down_proj", "down_param"))


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    norm = parts.read_norm(values)
    window = values["sliding_window"] if values["use_sliding_window"] else None
    dense = spec.BlockConfig(
        attention=parts.read_attention(values, qk_norm=spec.QKNormConfig(norm=norm)),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
    )
    dense = parts.with_window(dense, window)
    mixed = replace(
        dense,
        feed_forward=spec.MixtureOfExpertsConfig(
            d_model=values["hidden_size"],
            d_ff=require(values, "moe_intermediate_size"),
            num_experts=values["num_experts"] or values["num_local_experts"],
            top_k=values["num_experts_per_tok"],
            activation=hf.read_activation(values, "hidden_act"),
            router=spec.RouterConfig(scoring="softmax", normalize=values["norm_topk_prob"]),
        ),
    )
    step, plain = values["decoder_sparse_step"], values["mlp_only_layers"] or []
    layers = [
        mixed if i not in plain and (i + 1) % step == 0 else dense
        for i in range(require(values, "num_hidden_layers"))
    ]
    return read_decoder(values, layers, norm=norm)


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    mixtures = [isinstance(x.feed_forward, spec.MixtureOfExpertsConfig) for x in config.layers]
    if True not in mixtures:
        raise ValueError("no layer is a mixture of experts, only some or all")
    mixed = config.layers[mixtures.index(True)]
    dense = config.layers[mixtures.index(False)] if False in mixtures else None
    mixture = expect(mixed.feed_forward, spec.MixtureOfExpertsConfig)
    window = mixed.attention.score.window
    settings = parts.write_decoder(config)
    return settings | {
        "attention_bias": mixed.attention.out_bias,
        "decoder_sparse_step": 1,
        # Without dense layers it means nothing, and transformers wants a number.
        "intermediate_size": dense.feed_forward.d_ff if dense else mixture.d_ff,
        "mlp_only_layers": [i for i, is_mixture in enumerate(mixtures) if not is_mixture],
        "moe_intermediate_size": mixture.d_ff,
        "norm_topk_prob": mixture.router.normalize,
        "num_experts": mixture.num_experts,
        "num_experts_per_tok": mixture.top_k,
        "sliding_window": window,
        "use_sliding_window": window is not None,
    }


def _experts(config: spec.DecoderConfig, prefix: str) -> list[Rule]:
    numbers = [getattr(layer.feed_forward, "num_experts", 0) for layer in config.layers]
    theirs = f"{prefix}{_MIXTURE}.experts"
    return expert_rules(theirs, _OURS, _BANKS, max(numbers), config.leaves())


QWEN3_MOE = DecoderFamily(
    name="qwen3_moe",
    summary="Qwen3's mixtures of experts (Qwen3MoeForCausalLM, Qwen3MoeModel)",
    model_types=("qwen3_moe",),
    architectures=("Qwen3MoeForCausalLM", "Qwen3MoeModel"),
    modules=parts.MODULES | parts.QK_NORMS | {f"{_MIXTURE}.gate": f"{_OURS}.router_proj"},
    extra_rules=_experts,
    extra_names=tuple(f"{_MIXTURE}.experts.{{j}}.{name}.weight" for name, _ in _BANKS),
    settings=hf.settings_table(
        parts.UNDERSTOOD
        | {
            "decoder_sparse_step": Setting(int, 1, above=0),
            "intermediate_size": Setting(int, 6144),
            "mlp_only_layers": Setting(list),
            "moe_intermediate_size": SIZE,
            "norm_topk_prob": Setting(bool, False),
            "num_experts": SIZE,
            "num_experts_per_tok": Setting(int, 8),
            "num_local_experts": Setting(int, 128),
            "sliding_window": parts.WINDOWS["sliding_window"],
            "use_sliding_window": Setting(bool, False),
        },
        bookkeeping={"max_window_layers", "output_router_logits", "router_aux_loss_coef"},
    ),
    sizes={
        "vocab_size": parts.SIZES["vocab_size"],
        "hidden_size": parts.SIZES["hidden_size"],
        "moe_intermediate_size": ("layers.0.mlp.experts.0.gate_proj.weight", 0),
    },
    experts=("num_experts", "num_local_experts"),
    read=_read,
    write=_write,
    stack_kind=StackKind(
        rotary=spec.RotaryConfig,
        feed_forward=spec.GatedFeedForwardConfig | spec.MixtureOfExpertsConfig,
    ),
    buffers=parts.BUFFERS,
)
