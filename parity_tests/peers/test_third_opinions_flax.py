"""Attention beside ``flax.nnx.MultiHeadAttention``, forward and backward, in float64.

Asked for its weights it computes in the dtype that it is given; else it calls ``jax.nn``, whose
softmax is in float32.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from diptych.spec import AttentionConfig, NormConfig, QKNormConfig, ScoreConfig
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.support.harness import cotangents_of, judge_exact, random_arrays, run_jax

B, T, S, D, E, N, K, H = 2, 7, 11, 18, 13, 6, 3, 5
MASK = np.random.default_rng(7).random((B, T, S)) < 0.6
MASK[..., 0] = True

OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    # our config and call, its constructor and call
    "plain": ({}, {}, {}, {}),
    "mask": ({}, {"mask": MASK}, {}, {"mask": MASK[:, None]}),
    "causal": ({"score": ScoreConfig(is_causal=True)}, {}, {}, {"is_causal": True}),
    "grouped": ({"num_kv_heads": K}, {}, {"num_kv_heads": K}, {}),
    "no bias": ({"qkv_bias": False, "out_bias": False}, {}, {"use_bias": False}, {}),
    "q/k norm": (
        {"qk_norm": QKNormConfig(norm=NormConfig(kind="layer", eps=1e-6, bias=False))},
        {},
        {"normalize_qk": True},
        {},
    ),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_flax_module(option, tally):
    """Queries and memory of another length and width; causal as both frameworks, from the top."""
    fields, options, constructor, call_options = OPTIONS[option]
    config = AttentionConfig(d_model=D, num_heads=N, head_dim=H, kv_dim=E, **fields)
    arguments = random_arrays(1, {"query": (B, T, D), "key": (B, S, E), "value": (B, S, E)})
    tensors = random_tensors(config)
    sizes = {"qkv_features": N * H, "in_kv_features": E, "decode": False}
    with jax.enable_x64(True):
        module = nnx.MultiHeadAttention(
            N, D, **sizes, **constructor, param_dtype=jnp.float64, rngs=nnx.Rngs(0)
        )

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        theirs = nnx.clone(module)
        for name, array in arrays.items():
            if name not in arguments:
                _set(theirs, name, array)
        inputs = [arrays[name] for name in arguments]
        run = nnx.capture(theirs, nnx.Intermediate)
        output, found = run(*inputs, sow_weights=True, **call_options)
        return {"[0]": output, "[1]": found["attention_weights"].get_value()[0]}

    cotangents = cotangents_of({"[0]": np.empty((B, T, D)), "[1]": np.empty((B, N, T, S))})
    theirs = run_jax(call, arguments | tensors, cotangents)
    case = ComponentCase(config, arguments, options)
    for run in (run_component_torch, run_component_jax):
        ours = run(case, tensors, cotangents)
        judge_exact(tally, run.__name__, ours, theirs, float32_bits=False)


NAMES = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "out"}
NORMS = {"q_norm": "query_ln", "k_norm": "key_ln"}


def _set(module: nnx.MultiHeadAttention, name: str, array: jax.Array) -> None:
    """Give a module one of our parameters, heads apart and inputs first."""
    part, kind = name.split(".")
    if part in NORMS:
        getattr(module, NORMS[part]).scale[...] = array
        return
    linear = getattr(module, NAMES[part])
    if kind == "weight":
        linear.kernel[...] = array.T.reshape(linear.kernel.shape)
    else:
        linear.bias[...] = array.reshape(linear.bias.shape)
