"""Greedy decoding beside ``generate`` of ``transformers`` over its cache, in float64."""

from typing import Any

import jax
import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from diptych.spec import (
    AttentionConfig,
    BlockConfig,
    DecoderConfig,
    GatedFeedForwardConfig,
    LogitsHeadConfig,
    NormConfig,
    RotaryConfig,
    ScoreConfig,
    TextEmbeddingConfig,
)
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import jax_module, torch_module
from parity_tests.support.lift_float32 import float64_throughout
from parity_tests.support.panels import JAX, TORCH
from parity_tests.support.peers import (
    Peer,
    Tensors,
    canonical,
    judge_peer,
    named_stack,
    random_module,
)

B, T, D, N, K, H, F, V, M, LAYERS = 3, 7, 18, 6, 3, 4, 14, 29, 12, 2
IDS = np.random.default_rng(0).integers(0, V - 1, (B, T))  # the padding id takes no gradient there
LENGTHS = np.array([T, 4, 1])
KEYS = np.arange(T) < LENGTHS[:, None]
"""Padding comes last for us, first for ``transformers``."""
THEIRS = LlamaConfig(
    hidden_size=D, num_attention_heads=N, num_key_value_heads=K, head_dim=H, intermediate_size=F,
    num_hidden_layers=LAYERS, vocab_size=V, rms_norm_eps=1e-4, tie_word_embeddings=False,
    rope_parameters={"rope_type": "default", "rope_theta": 100.0}, bos_token_id=0,
    eos_token_id=None, pad_token_id=V - 1, attn_implementation="eager",
)  # fmt: skip
NORM = NormConfig(kind="rms", eps=1e-4)
CONFIG = DecoderConfig(
    layer=BlockConfig(
        attention=AttentionConfig(
            d_model=D,
            num_heads=N,
            num_kv_heads=K,
            head_dim=H,
            qkv_bias=False,
            out_bias=False,
            score=ScoreConfig(is_causal=True),
            rotary=RotaryConfig(theta=100.0),
        ),
        feed_forward=GatedFeedForwardConfig(d_model=D, d_ff=F),
        norm=NORM,
    ),
    num_layers=LAYERS,
    embedding=TextEmbeddingConfig(
        vocab_size=V, d_model=D, max_seq_len=None, num_token_types=0, norm=None
    ),
    final_norm=NORM,
    head=LogitsHeadConfig(d_model=D, vocab_size=V, tied=False),
)


def call(model: Any, inputs: Tensors) -> Tensors:
    """Call the model once over whole prompts, its padding last too."""
    states: list[torch.Tensor] = []
    hook = model.model.norm.register_forward_pre_hook(lambda _, args: states.append(args[0]))
    found = model(
        inputs["ids"],
        attention_mask=torch.from_numpy(KEYS * 1),
        output_attentions=True,
        output_hidden_states=True,
        use_cache=False,
    )
    hook.remove()
    *before, output = found.hidden_states
    named = named_stack(output, [*before, *states], found.attentions)
    return named | {"[logits]": found.logits}


ASKED = {"need_weights": True, "need_hidden_states": True, "key_mask": KEYS}
PEER = Peer(
    lambda: LlamaForCausalLM(THEIRS),
    ComponentCase(CONFIG, {"ids": IDS}, ASKED),
    call,
    {
        "model.embed_tokens": "embedding.token_embed",
        "model.layers": "layers",
        "model.norm": "final_norm",
        "lm_head": "head.vocab_proj",
        "self_attn": "attention",
        "o_proj": "out_proj",
        "mlp": "feed_forward",
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "feed_forward_norm",
    },
)


def test_one_call():
    judge_peer(PEER)


def _their_tokens(model: Any, stop: int | None) -> np.ndarray:
    """Continue the prompts, padding moved to their front, with a cache."""
    ids, mask = np.zeros_like(IDS), np.zeros_like(IDS)
    for row, length in enumerate(LENGTHS):
        ids[row, T - length :], mask[row, T - length :] = IDS[row, :length], 1
    with float64_throughout(), torch.no_grad():
        found = model.generate(
            torch.from_numpy(ids),
            attention_mask=torch.from_numpy(mask),
            max_new_tokens=M,
            do_sample=False,
            use_cache=True,
            eos_token_id=stop,
            pad_token_id=0 if stop is None else stop,
        )
    return found[:, T:].numpy()


@pytest.mark.parametrize("stops", [False, True])
def test_the_same_tokens(stops):
    """Of prompts of three lengths; stopped ones are filled up with the stop id."""
    model = random_module(PEER.build)
    tensors = canonical(PEER, dict(model.named_parameters()))
    theirs = _their_tokens(model, None)
    assert all(len(set(row)) > 3 for row in theirs), "tokens that say nothing"
    options: dict[str, Any] = {"max_new_tokens": M}
    if stops:
        stop = int(theirs[0, 3])
        theirs = _their_tokens(model, stop)
        options["stop_ids"] = (stop,)
    ours = TORCH.package.generate
    in_torch = TORCH.run(ours, torch_module(CONFIG, tensors), IDS, key_mask=KEYS, **options)
    decoder = jax_module(CONFIG, tensors)

    def generate(ids: Any, keys: Any) -> Any:
        return JAX.package.generate(decoder, ids, key_mask=keys, **options)

    in_jax = JAX.run(jax.jit(generate), IDS, KEYS)
    for found in (in_torch, in_jax):
        tokens = found.tokens[:, : theirs.shape[1]]
        np.testing.assert_array_equal(tokens, theirs)
        assert not stops or (found.lengths < M).any()
