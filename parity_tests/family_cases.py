"""A tiny model of every family, or several where its files differ."""

from functools import partial
from typing import Any

import transformers

from parity_tests.tiny_transformers import (
    PADDING,
    VOCAB,
    FamilyCase,
    our_text_inputs,
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


def language_model(family: str, name: str, config: str, **settings: Any) -> FamilyCase:
    """Return a case of a decoder with a head, or without one."""
    output = {"logits": "[logits]"} if "LM" in name else {"last_hidden_state": "[output]"}
    return FamilyCase(
        family=family,
        model=getattr(transformers, name),
        config=partial(getattr(transformers, config), **settings),
        inputs=text_inputs,
        ours=our_text_inputs,
        outputs=output,
        lists=LISTS,
        # Theirs ends with the normalised output, ours with the last layer's.
        skip={f"[hidden_states][{settings.get('num_hidden_layers', settings.get('n_layer'))}]": ""},
    )


llama = partial(language_model, "llama", "LlamaForCausalLM", "LlamaConfig", **GROUPED)
GPT2 = {
    "vocab_size": VOCAB,
    "n_positions": 64,
    "n_embd": 32,
    "n_layer": 3,
    "n_head": 4,
    **SPECIAL,
}
gpt2 = partial(language_model, "gpt2", "GPT2LMHeadModel", "GPT2Config", **GPT2)

CASES = {
    "gpt2": gpt2(n_inner=44),
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
    "llama base": language_model(
        "llama", "LlamaModel", "LlamaConfig", **GROUPED, rope_parameters=ROPE
    ),
}
