"""A tiny model of every family, or several where its files differ."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
import transformers

from parity_tests.families.cases_encoder import ENCODERS
from parity_tests.families.cases_encoder_decoder import ENCODER_DECODERS
from parity_tests.families.cases_vision import VISION_CASES
from parity_tests.support.tiny_transformers import (
    PADDING,
    VOCAB,
    FamilyCase,
    our_text_inputs,
    slow,
    text_inputs,
)

SPECIAL = {"pad_token_id": PADDING, "bos_token_id": 0, "eos_token_id": 2}
SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 44,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    **SPECIAL,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
ROPE = {"rope_type": "default", "rope_theta": 10000.0}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LISTS = {"hidden_states": "[hidden_states]", "attentions": "[attention_weights]"}


def language_model(
    family: str, name: str, config: str, *, options: dict[str, Any] | None = None, **settings: Any
) -> FamilyCase:
    """Return a case of a decoder with a head, or without one; options are those of the case."""
    output = {"logits": "[logits]"} if "LM" in name else {}
    case = FamilyCase(
        family=family,
        model=getattr(transformers, name),
        config=partial(getattr(transformers, config), **settings),
        inputs=text_inputs,
        ours=our_text_inputs,
        outputs=output,
        lists=LISTS,
    )
    return replace(case, **(options or {}))


def exact_gelu_tanh(model: Any) -> None:
    """Bloom's gelu cuts sqrt(2 / pi) off after eight digits."""
    for module in model.modules():
        if hasattr(module, "gelu_impl"):
            module.gelu_impl = torch.nn.GELU(approximate="tanh")


def unpadded() -> dict[str, np.ndarray]:
    """Return prompts of one length: theirs counts positions of padding otherwise."""
    inputs = text_inputs()
    return inputs | {"attention_mask": np.ones_like(inputs["attention_mask"])}


def causal(family: str, stem: str, **settings: Any) -> FamilyCase:
    """Return a case of STEMForCausalLM."""
    return language_model(family, f"{stem}ForCausalLM", f"{stem}Config", **settings)


llama = partial(causal, "llama", "Llama", **GROUPED)
falcon = partial(
    causal,
    "falcon",
    "Falcon",
    **{name: size for name, size in SIZES.items() if name != "intermediate_size"},
    ffn_hidden_size=44,
)
EAGER_EXPERTS = {"options": {"options": {"experts_implementation": "eager"}}}
GPT2 = {
    "vocab_size": VOCAB,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    **SPECIAL,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 150000.0,
    "factor": 4.0,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "truncate": False,
    "original_max_position_embeddings": 16,
}
MLA = {
    "moe_intermediate_size": 28,
    "n_shared_experts": 1,
    "n_routed_experts": 8,
    "num_experts_per_tok": 3,
    "n_group": 4,
    "topk_group": 2,
    "kv_lora_rank": 20,
    "q_lora_rank": 18,
    "qk_rope_head_dim": 8,
    "v_head_dim": 12,
    "qk_nope_head_dim": 10,
    "first_k_dense_replace": 1,
    "routed_scaling_factor": 2.5,
}

DECODERS = {
    "gpt2": language_model("gpt2", "GPT2LMHeadModel", "GPT2Config", **GPT2, n_inner=44),
    "gpt2 base, scaled by layer": language_model(
        "gpt2", "GPT2Model", "GPT2Config", **GPT2, scale_attn_by_inverse_layer_idx=True
    ),
    "llama": llama(rope_parameters=ROPE),
    "llama 3.1": llama(
        rope_parameters=LLAMA3,
        head_dim=12,
        attention_bias=True,
        mlp_bias=True,
        tie_word_embeddings=True,
    ),
    "llama base": slow(
        language_model("llama", "LlamaModel", "LlamaConfig", **GROUPED, rope_parameters=ROPE)
    ),
    "mistral": causal(
        "mistral", "Mistral", **GROUPED, rope_parameters=ROPE, sliding_window=5, head_dim=12
    ),
    "qwen2": causal(
        "qwen2",
        "Qwen2",
        **GROUPED,
        rope_parameters=ROPE | {"rope_theta": 1e6},
        use_sliding_window=True,
        sliding_window=5,
        max_window_layers=1,
        tie_word_embeddings=True,
    ),
    "qwen3": causal(
        "qwen3", "Qwen3", **GROUPED, rope_parameters=ROPE | {"rope_theta": 1e6}, head_dim=12
    ),
    "gemma": causal("gemma", "Gemma", **GROUPED, rope_parameters=ROPE, head_dim=12),
    "gemma2": causal(
        "gemma2",
        "Gemma2",
        **GROUPED,
        rope_parameters=ROPE,
        head_dim=12,
        query_pre_attn_scalar=20,
        sliding_window=5,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
    ),
    "gemma3_text": language_model(
        "gemma3_text",
        "Gemma3ForCausalLM",
        "Gemma3TextConfig",
        **GROUPED,
        head_dim=12,
        query_pre_attn_scalar=20,
        sliding_window=5,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    ),
    "phi3": causal(
        "phi3",
        "Phi3",
        **GROUPED,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.75},
        sliding_window=5,
    ),
    "gpt_neox": causal(
        "gpt_neox", "GPTNeoX", **SIZES, rope_parameters=ROPE | {"partial_rotary_factor": 0.25}
    ),
    "gpt_neox, serial": causal(
        "gpt_neox",
        "GPTNeoX",
        **SIZES,
        rope_parameters=ROPE | {"partial_rotary_factor": 0.5},
        use_parallel_residual=False,
        tie_word_embeddings=True,
    ),
    "olmo2": causal("olmo2", "Olmo2", **GROUPED, rope_parameters=ROPE | {"rope_theta": 5e5}),
    "opt": causal(
        "opt",
        "OPT",
        **{name: size for name, size in SIZES.items() if name != "intermediate_size"},
        ffn_dim=44,
        word_embed_proj_dim=32,
        options={"inputs": unpadded},
    ),
    "opt 350m": causal(
        "opt",
        "OPT",
        **{name: size for name, size in SIZES.items() if name != "intermediate_size"},
        ffn_dim=44,
        word_embed_proj_dim=20,
        do_layer_norm_before=False,
        # Their last hidden state is projected to the tables' width.
        options={"inputs": unpadded, "lists": {"attentions": "[attention_weights]"}},
    ),
    "bloom": causal(
        "bloom",
        "Bloom",
        vocab_size=VOCAB,
        hidden_size=32,
        n_layer=3,
        n_head=4,
        **SPECIAL,
        options={"prepare": exact_gelu_tanh},
    ),
    "falcon": falcon(rope_parameters=ROPE),
    "falcon, grouped": falcon(new_decoder_architecture=True, num_kv_heads=2, rope_parameters=ROPE),
    # With eager attention theirs adds the penalties twice.
    "falcon, alibi": falcon(
        alibi=True,
        bias=True,
        multi_query=False,
        parallel_attn=False,
        options={
            "options": {"attn_implementation": "sdpa"},
            "lists": {"hidden_states": "[hidden_states]"},
        },
    ),
    "mpt": causal(
        "mpt", "Mpt", vocab_size=VOCAB, d_model=32, n_heads=4, n_layers=3, max_seq_len=64, **SPECIAL
    ),
    "starcoder2": causal(
        "starcoder2", "Starcoder2", **GROUPED, rope_parameters=ROPE, sliding_window=5
    ),
    "cohere": causal("cohere", "Cohere", **GROUPED, rope_parameters=ROPE, logit_scale=0.25),
    "mixtral": causal(
        "mixtral",
        "Mixtral",
        **GROUPED,
        rope_parameters=ROPE | {"rope_theta": 1e6},
        num_local_experts=4,
        num_experts_per_tok=2,
        head_dim=12,
        **EAGER_EXPERTS,
    ),
    "qwen3_moe": causal(
        "qwen3_moe",
        "Qwen3Moe",
        **GROUPED,
        rope_parameters=ROPE,
        head_dim=12,
        moe_intermediate_size=28,
        num_experts=4,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        mlp_only_layers=[1],
        **EAGER_EXPERTS,
    ),
    "gpt_oss": causal(
        "gpt_oss",
        "GptOss",
        **GROUPED,
        rope_parameters=YARN,
        head_dim=12,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=5,
        **EAGER_EXPERTS,
    ),
    "deepseek_v3": causal(
        "deepseek_v3",
        "DeepseekV3",
        **SIZES,
        num_key_value_heads=4,
        **MLA,
        rope_parameters=ROPE,
        **EAGER_EXPERTS,
    ),
    "deepseek_v3, yarn": causal(
        "deepseek_v3",
        "DeepseekV3",
        **SIZES,
        num_key_value_heads=4,
        **(MLA | {"q_lora_rank": None}),
        rope_parameters=YARN | {"mscale": 1.0, "mscale_all_dim": 0.7, "truncate": True},
        **EAGER_EXPERTS,
    ),
}
CASES = DECODERS | ENCODERS | ENCODER_DECODERS | VISION_CASES
