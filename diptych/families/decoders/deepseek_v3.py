"""DeepSeek-V3 (DeepSeek-AI 2024) as ``transformers`` stores it, not quantised."""

from dataclasses import replace
from math import log
from typing import Any

from ... import spec
from ...rules import Rule
from .. import transformers_settings as hf
from ..experts import expert_rules
from ..rope import read_rotary, write_rotary
from ..settings import NUMBER, SIZE, Setting, require, without
from ..stacks import StackKind, expect, read_decoder, write_ends
from . import parts
from .family import DecoderFamily

_ATTENTION, _THEIRS = "layers.{i}.attention", "layers.{i}.self_attn"
_MIXTURE, _OURS = "layers.{i}.mlp", "layers.{i}.feed_forward"
_MODULES = {
    f"{_THEIRS}.q_proj": f"{_ATTENTION}.q_proj",
    f"{_THEIRS}.q_a_proj": f"{_ATTENTION}.q_down_proj",
    f"{_THEIRS}.q_a_layernorm": f"{_ATTENTION}.q_norm",
    f"{_THEIRS}.q_b_proj": f"{_ATTENTION}.q_up_proj",
    f"{_THEIRS}.kv_a_proj_with_mqa": f"{_ATTENTION}.kv_down_proj",
    f"{_THEIRS}.kv_a_layernorm": f"{_ATTENTION}.kv_norm",
    f"{_THEIRS}.kv_b_proj": f"{_ATTENTION}.kv_up_proj",
    f"{_THEIRS}.o_proj": f"{_ATTENTION}.out_proj",
    f"{_MIXTURE}.gate": f"{_OURS}.router_proj",
    f"{_MIXTURE}.gate.e_score_correction_bias": f"{_OURS}.router_choice_param",
    f"{_MIXTURE}.shared_experts.gate_proj": f"{_OURS}.shared.gate_proj",
    f"{_MIXTURE}.shared_experts.up_proj": f"{_OURS}.shared.up_proj",
    f"{_MIXTURE}.shared_experts.down_proj": f"{_OURS}.shared.down_proj",
}
_BANKS = (("gate_proj", "gate_param"), ("up_proj", "up_param"), ("down_proj", "down_param"))


def _read(values: dict[str, Any]) -> spec.DecoderConfig:
    norm = parts.read_norm(values)
    d_model, rope_dim = require(values, "hidden_size"), values["qk_rope_head_dim"]
    rotary = read_rotary(values, rope_dim, interleaved=values["rope_interleave"])
    layer = spec.BlockConfig(
        attention=spec.LatentAttentionConfig(
            d_model=d_model,
            num_heads=require(values, "num_attention_heads"),
            kv_rank=values["kv_lora_rank"],
            nope_dim=values["qk_nope_head_dim"],
            rope_dim=rope_dim,
            v_dim=values["v_head_dim"],
            q_rank=values["q_lora_rank"],
            qkv_bias=values["attention_bias"],
            out_bias=values["attention_bias"],
            attention_dropout=values["attention_dropout"],
            # theirs has no setting for the eps of these norms
            norm=replace(norm, eps=1e-6),
            score=spec.ScoreConfig(
                is_causal=True, scale=_scale(rotary, values["qk_nope_head_dim"] + rope_dim)
            ),
            rotary=rotary,
        ),
        feed_forward=parts.read_feed_forward(values),
        norm=norm,
    )
    width = require(values, "moe_intermediate_size")
    shared = values["n_shared_experts"]
    mixed = replace(
        layer,
        feed_forward=spec.MixtureOfExpertsConfig(
            d_model=d_model,
            d_ff=width,
            num_experts=require(values, "n_routed_experts"),
            top_k=values["num_experts_per_tok"],
            activation=hf.read_activation(values, "hidden_act"),
            router=spec.RouterConfig(
                scoring="sigmoid",
                normalize=values["norm_topk_prob"],
                scale=values["routed_scaling_factor"],
                choice_bias=True,
                num_groups=values["n_group"],
                top_groups=values["topk_group"],
            ),
            shared_d_ff=width * shared if shared else None,
        ),
    )
    dense = values["first_k_dense_replace"]
    layers = [layer if i < dense else mixed for i in range(require(values, "num_hidden_layers"))]
    return read_decoder(values, layers, norm=norm)


def _scale(rotary: spec.RotaryConfig, width: int) -> float | None:
    """Return the factor on the scores: YaRN's attention factor, squared, goes with it."""
    scaling = rotary.scaling
    if not isinstance(scaling, spec.YarnScaling) or not scaling.mscale_all_dim:
        return None
    factor = scaling.factor
    mscale = 0.1 * scaling.mscale_all_dim * log(factor) + 1.0 if factor > 1 else 1.0
    return width**-0.5 * mscale * mscale


def _write(config: spec.DecoderConfig) -> dict[str, Any]:
    mixtures = [isinstance(x.feed_forward, spec.MixtureOfExpertsConfig) for x in config.layers]
    if True not in mixtures:
        raise ValueError("no layer is a mixture of experts, only some or all")
    layer = config.layers[mixtures.index(True)]
    dense = config.layers[mixtures.index(False)] if False in mixtures else None
    attention = expect(layer.attention, spec.LatentAttentionConfig)
    mixture = expect(layer.feed_forward, spec.MixtureOfExpertsConfig)
    router = mixture.router
    return {
        "attention_bias": attention.out_bias,
        "attention_dropout": attention.attention_dropout,
        "first_k_dense_replace": mixtures.index(True),
        "hidden_act": hf.write_activation(mixture.activation),
        "hidden_size": config.d_model,
        # Without dense layers it means nothing, and transformers wants a number.
        "intermediate_size": dense.feed_forward.d_ff if dense else mixture.d_ff,
        "kv_lora_rank": attention.kv_rank,
        "moe_intermediate_size": mixture.d_ff,
        "n_group": router.num_groups,
        "n_routed_experts": mixture.num_experts,
        "n_shared_experts": (mixture.shared_d_ff or 0) // mixture.d_ff,
        "norm_topk_prob": router.normalize,
        "num_attention_heads": attention.num_heads,
        "num_experts_per_tok": mixture.top_k,
        "num_hidden_layers": config.num_layers,
        "num_key_value_heads": attention.num_heads,
        "q_lora_rank": attention.q_rank,
        "qk_nope_head_dim": attention.nope_dim,
        "qk_rope_head_dim": attention.rope_dim,
        "rms_norm_eps": layer.norm.of(1).eps,
        "rope_interleave": attention.rotary.interleaved,
        "routed_scaling_factor": router.scale,
        "topk_group": router.top_groups,
        "v_head_dim": attention.v_dim,
        **write_ends(config),
        **write_rotary(attention.rotary, attention.rope_dim),
    }


def _experts(config: spec.DecoderConfig, prefix: str) -> list[Rule]:
    numbers = [getattr(layer.feed_forward, "num_experts", 0) for layer in config.layers]
    theirs = f"{prefix}{_MIXTURE}.experts"
    return expert_rules(theirs, _OURS, _BANKS, max(numbers), config.leaves())


DEEPSEEK_V3 = DecoderFamily(
    name="deepseek_v3",
    summary="DeepSeek-V3, R1, dequantised (DeepseekV3ForCausalLM, DeepseekV3Model)",
    model_types=("deepseek_v3",),
    architectures=("DeepseekV3ForCausalLM", "DeepseekV3Model"),
    modules=parts.ENDS | parts.NORMS | parts.FEED_FORWARD | _MODULES,
    extra_rules=_experts,
    extra_names=tuple(f"{_MIXTURE}.experts.{{j}}.{name}.weight" for name, _ in _BANKS),
    settings=hf.settings_table(
        {
            **without(parts.UNDERSTOOD, "head_dim"),
            "first_k_dense_replace": Setting(int, 3),
            "kv_lora_rank": Setting(int, 512),
            "moe_intermediate_size": SIZE,
            "n_group": Setting(int, 8),
            "n_routed_experts": SIZE,
            "n_shared_experts": Setting(int, 1),
            "norm_topk_prob": Setting(bool, True),
            "num_experts_per_tok": Setting(int, 8),
            "q_lora_rank": Setting(int, 1536, nullable=True),
            "qk_nope_head_dim": Setting(int, 128),
            "qk_rope_head_dim": Setting(int, 64),
            "rope_interleave": Setting(bool, True),
            "routed_scaling_factor": Setting(NUMBER, 2.5),
            "topk_group": Setting(int, 4),
            "v_head_dim": Setting(int, 128),
        },
        bookkeeping={
            "auto_map",
            "aux_loss_alpha",
            "ep_size",
            "head_dim",
            "num_nextn_predict_layers",
            "output_router_logits",
            "qk_head_dim",
            "seq_aux",
        },
        fixed={
            "moe_layer_freq": (1,),
            "scoring_func": ("sigmoid",),
            "topk_method": ("noaux_tc",),
        },
    ),
    sizes={
        **parts.SIZES,
        "moe_intermediate_size": ("layers.1.mlp.experts.0.gate_proj.weight", 0),
    },
    experts=("n_routed_experts",),
    read=_read,
    write=_write,
    stack_kind=StackKind(
        attention=spec.LatentAttentionConfig,
        feed_forward=spec.GatedFeedForwardConfig | spec.MixtureOfExpertsConfig,
    ),
    buffers=parts.BUFFERS,
)
