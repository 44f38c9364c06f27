"""Attention beside torch's function and module, forward and backward.

What they do differently stands in ``known_differences``.
"""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from parity_tests.peers.third_opinions import (
    RANDOM,
    B,
    K,
    N,
    coins,
    every_length,
    inputs_of,
    judge_in_float64,
)
from parity_tests.support.harness import (
    cotangents_of,
    judge_exact,
    random_arrays,
    run_torch,
    to_torch,
)
from parity_tests.support.panels import JAX, TORCH


@every_length
@pytest.mark.parametrize("option", ["plain", "mask", "mask per head", "bias", "causal", "grouped"])
def test_torch_functional(tally, option, lengths):
    T, S = lengths
    inputs = inputs_of(T, S, kv_heads=K if option == "grouped" else N)
    mask = {"mask": coins(T, S), "mask per head": coins(B, N, T, S)}.get(option)
    bias = RANDOM.normal(size=(B, N, T, S)) if option == "bias" else None
    options = {
        "plain": {"scale": 0.3},
        "mask": {"mask": mask},
        "mask per head": {"mask": mask},
        "bias": {"bias": bias},
        "causal": {"is_causal": True},
        "grouped": {},
    }[option]

    def peer(query, key, value):
        added = mask if bias is None else bias
        return scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if added is None else to_torch(added),
            is_causal=option == "causal",
            scale=options.get("scale"),
            enable_gqa=option == "grouped",
        )

    judge_in_float64(tally, inputs, options, peer)


@pytest.mark.parametrize("option", ["plain", "padding", "mask", "widths", "causal", "no bias"])
def test_torch_module(tally, option):
    D, S, T = 12, 7, 7 if option == "causal" else 5
    kdim, vdim = (8, 9) if option == "widths" else (D, D)
    theirs = torch.nn.MultiheadAttention(
        D, N, bias=option != "no bias", kdim=kdim, vdim=vdim, batch_first=True, dtype=torch.float64
    )
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(generator=generator)
    x = random_arrays(1, {"query": (B, T, D), "key": (B, S, kdim), "value": (B, S, vdim)})
    keys = np.arange(S) < np.array([[S], [4]])
    causal = np.tril(np.ones((T, S), bool))
    masked = coins(T, S)
    options, given = {
        "padding": ({"key_mask": keys}, {"key_padding_mask": to_torch(~keys)}),
        "mask": ({"mask": masked}, {"attn_mask": to_torch(~masked)}),
        "causal": ({"mask": causal}, {"attn_mask": to_torch(~causal), "is_causal": True}),
    }.get(option, ({}, {}))
    peer = run_torch(
        lambda a: dict(
            zip(
                ("output", "weights"),
                theirs(*a.values(), average_attn_weights=False, **given),
                strict=True,
            )
        ),
        x,
        cotangents_of({"output": np.empty((B, T, D)), "weights": np.empty((B, N, T, S))}),
    )
    weights = _projections(theirs)
    for panel in (TORCH, JAX):

        def call(arrays: dict[str, Any], panel: Any = panel) -> dict[str, Any]:
            heads = {}
            for name, array in arrays.items():
                kernel, bias = panel.array(weights[name])
                columns = array @ kernel.T + bias
                split = columns.reshape(B, array.shape[-2], N, D // N)
                heads[name] = split.swapaxes(1, 2)
            output, found = panel.functional.scaled_dot_product_attention(
                **heads, **panel.array(options)
            )
            kernel, bias = panel.array(weights["out"])
            joined = output.swapaxes(1, 2).reshape(B, T, D)
            return {"output": joined @ kernel.T + bias, "weights": found}

        found = panel.differentiate(
            call,
            x,
            cotangents_of({"output": np.empty((B, T, D)), "weights": np.empty((B, N, T, S))}),
        )
        judge_exact(tally, option, found, peer, float32_bits=False)


def _projections(module: torch.nn.MultiheadAttention) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return kernel and bias of every projection by the name of its input."""
    D = module.embed_dim
    if module.in_proj_weight is None:
        kernels = [module.q_proj_weight, module.k_proj_weight, module.v_proj_weight]
    else:
        kernels = list(module.in_proj_weight.chunk(3))
    zeros = torch.zeros(4 * D, dtype=torch.float64)
    biases = list((zeros[: 3 * D] if module.in_proj_bias is None else module.in_proj_bias).chunk(3))
    out_bias = zeros[:D] if module.out_proj.bias is None else module.out_proj.bias
    return {
        name: (kernel.detach().numpy(), bias.detach().numpy())
        for name, kernel, bias in zip(
            ("query", "key", "value", "out"),
            [*kernels, module.out_proj.weight],
            [*biases, out_bias],
            strict=True,
        )
    }
