"""Attention against the frameworks' own, each over the options that it has, forward and backward.

A peer that computes in float64 is held to the exact tier; one that does its softmax in float32
whatever it is given is run in float32 against our float64, by the working rule. What a peer does
differently stands in ``known_differences``.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx
from torch.nn.attention.flex_attention import create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from diptych.parity.compare import compare_working
from parity_tests.harness import (
    Arrays,
    Run,
    cotangents_of,
    judge_exact,
    random_arrays,
    run_jax,
    run_torch,
    to_jax,
    to_torch,
)
from parity_tests.panels import JAX, TORCH

B, N, K, H, V = 2, 6, 3, 5, 7
LENGTHS = {"T<S": (7, 11), "T>S": (11, 7), "T=1": (1, 11), "T=S": (7, 7)}
_random = np.random.default_rng(31)

every_length = pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)


def inputs_of(T: int, S: int, *, kv_heads: int = N, value_width: int = V) -> Arrays:
    shapes = {
        "query": (B, N, T, H),
        "key": (B, kv_heads, S, H),
        "value": (B, kv_heads, S, value_width),
    }
    return random_arrays(3, shapes)


def coins(*shape: int) -> np.ndarray:
    """Return a mask of which every row sees a key."""
    mask = _random.random(shape) < 0.6
    mask[..., 0] = True
    return mask


def ours(panel: Any, inputs: Arrays, options: dict[str, Any], run: Any = None) -> Run:
    """Run our attention, differentiated at its output."""

    def call(arrays: dict[str, Any]) -> dict[str, Any]:
        given = {name: arrays[name] for name in arrays} | panel.array(options)
        return {"output": panel.functional.scaled_dot_product_attention(**given)[0]}

    shape = (*inputs["query"].shape[:-1], inputs["value"].shape[-1])
    return (run or panel.differentiate)(call, inputs, cotangents(shape, inputs))


def cotangents(shape: tuple[int, ...], inputs: Arrays) -> Arrays:
    found = cotangents_of({"output": np.empty(shape)})
    return {name: array.astype(inputs["query"].dtype) for name, array in found.items()}


def judge_in_float64(tally, inputs: Arrays, options: dict[str, Any], peer: Callable) -> None:
    """Hold both panels to a peer of torch."""
    shape = (*inputs["query"].shape[:-1], inputs["value"].shape[-1])
    theirs = run_torch(lambda a: {"output": peer(**a)}, inputs, cotangents(shape, inputs))
    for panel in (TORCH, JAX):
        found = ours(panel, inputs, options)
        judge_exact(tally, panel.name, found, theirs, float32_bits=False)


def judge_in_float32(inputs: Arrays, options: dict[str, Any], peer: Callable) -> None:
    """Hold both panels to a peer of JAX: all three in float32, the truth our float64."""
    narrow = {name: array.astype(np.float32) for name, array in inputs.items()}
    wide = {name: array.astype(np.float64) for name, array in narrow.items()}
    shape = (*inputs["query"].shape[:-1], inputs["value"].shape[-1])
    theirs = run_jax(
        lambda a: {"output": peer(**a)}, narrow, cotangents(shape, narrow), jit=False, x64=False
    )
    for panel in (TORCH, JAX):
        truth = _rounded_cotangents(panel, wide, options)
        run = None if panel is TORCH else _run_jax_narrow
        found = ours(panel, narrow, options, run)
        faults = [
            str(row)
            for kind in ("outputs", "gradients")
            for name, right in getattr(truth, kind).items()
            for row in (
                compare_working(getattr(found, kind)[name], right, getattr(theirs, kind)[name]),
                compare_working(getattr(theirs, kind)[name], right, getattr(found, kind)[name]),
            )
            if not row.ok
        ]
        assert not faults, "\n".join(faults)


def _rounded_cotangents(panel: Any, wide: Arrays, options: dict[str, Any]) -> Run:
    def run(call: Any, inputs: Arrays, given: Arrays) -> Run:
        rounded = {n: a.astype(np.float32).astype(np.float64) for n, a in given.items()}
        return panel.differentiate(call, inputs, rounded)

    return ours(panel, wide, options, run)


def _run_jax_narrow(call: Any, inputs: Arrays, given: Arrays) -> Run:
    return run_jax(call, inputs, given, jit=False, x64=False)


@every_length
@pytest.mark.parametrize("option", ["plain", "mask", "mask per head", "bias", "causal", "grouped"])
def test_torch_functional(tally, option, lengths):
    T, S = lengths
    inputs = inputs_of(T, S, kv_heads=K if option == "grouped" else N)
    mask = {"mask": coins(T, S), "mask per head": coins(B, N, T, S)}.get(option)
    bias = _random.normal(size=(B, N, T, S)) if option == "bias" else None
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


def _documents(length: int) -> np.ndarray:
    return np.arange(length) // 4 + np.array([[0], [1]])


FLEX_SCORES: dict[str, tuple[Callable, Callable]] = {
    # what we are given, for (T, S); the peer's score of (score, b, h, q, k)
    "softcap": (lambda T, S: {"softcap": 1.3}, lambda s, b, h, q, k: 1.3 * torch.tanh(s / 1.3)),
    "alibi": (
        lambda T, S: {
            "bias": np.array([2.0 ** -(n + 1) for n in range(N)])[None, :, None, None]
            * (np.arange(S) - np.arange(T)[:, None])
        },
        lambda s, b, h, q, k: s + torch.exp2(-(h + 1.0)) * (k - q),
    ),
}
FLEX_MASKS: dict[str, tuple[Callable, Callable]] = {
    "window": (
        lambda T, S: {"window": 3, "is_causal": True},
        lambda b, h, q, k: (k <= q) & (q - k < 3),
    ),
    "window both ways": (
        lambda T, S: {"window": (2, 1)},
        lambda b, h, q, k: (q - k <= 2) & (k - q <= 1),
    ),
    "causal offset": (
        lambda T, S: {"is_causal": True, "offset": S - T},
        lambda b, h, q, k, *, shift=None: k <= q + shift,
    ),
    "documents": (
        lambda T, S: {"segment_ids": (_documents(T), _documents(S))},
        lambda b, h, q, k: q // 4 == k // 4,
    ),
}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("lengths", [(7, 11), (7, 7)], ids=str)
@pytest.mark.parametrize("name", [*FLEX_SCORES, *FLEX_MASKS])
@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
def test_flex_attention(name, lengths, grouped, tally):
    T, S = lengths
    inputs = inputs_of(T, S, kv_heads=K if grouped else N)
    to_options, modify = (FLEX_SCORES | FLEX_MASKS)[name]
    options: dict[str, Any] = {"enable_gqa": grouped}
    if name in FLEX_SCORES:
        options["score_mod"] = modify
    else:

        def allowed(b, h, q, k):
            return (
                modify(b, h, q, k, shift=S - T) if name == "causal offset" else modify(b, h, q, k)
            )

        options["block_mask"] = create_block_mask(allowed, None, None, T, S, device="cpu")
    shape = (B, N, T, V)
    theirs = {"output": flex_attention(*map(to_torch, inputs.values()), **options).numpy()}
    for panel in (TORCH, JAX):
        found = ours(panel, inputs, to_options(T, S))
        assert found.outputs["output"].shape == shape
        judge_exact(tally, name, Run(found.outputs, {}), Run(theirs, {}), float32_bits=False)


@every_length
@pytest.mark.parametrize("option", ["plain", "mask", "bias", "causal", "grouped", "window"])
def test_jax_nn(option, lengths):
    T, S = lengths
    inputs = inputs_of(T, S, kv_heads=K if option == "grouped" else N, value_width=H)
    options: dict[str, Any] = {
        "plain": {"scale": 0.3},
        "mask": {"mask": coins(B, N, T, S)},
        "bias": {"bias": _random.normal(size=(B, N, T, S)).astype(np.float32)},
        "causal": {"is_causal": True},
        "grouped": {},
        "window": {"window": (max(T - 1, 2), 1)},
    }[option]

    def peer(query, key, value):
        given = {name: array for name, array in options.items() if name != "window"}
        window = options.get("window")
        found = jax.nn.dot_product_attention(
            *(jnp.swapaxes(x, 1, 2) for x in (query, key, value)),
            **to_jax(given),
            local_window_size=window,
        )
        return jnp.swapaxes(found, 1, 2)

    judge_in_float32(inputs, options, peer)


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


@pytest.mark.parametrize("option", ["plain", "mask", "causal", "grouped", "widths"])
def test_flax_module(option):
    D, T, S = 12, 7, 7
    kv_width = 8 if option == "widths" else D
    theirs = nnx.MultiHeadAttention(
        N,
        D,
        num_kv_heads=K if option == "grouped" else None,
        in_kv_features=kv_width,
        decode=False,
        rngs=nnx.Rngs(0),
    )
    mask = coins(B, T, S)
    x = {
        name: array.astype(np.float32)
        for name, array in random_arrays(
            1, {"query": (B, T, D), "key": (B, S, kv_width), "value": (B, S, kv_width)}
        ).items()
    }
    options, given = {
        "mask": ({"mask": mask}, {"mask": jnp.asarray(mask[:, None])}),
        "causal": ({"is_causal": True}, {"is_causal": True}),
    }.get(option, ({}, {}))
    peer = np.asarray(theirs(*to_jax(tuple(x.values())), **given))

    def project(name: str) -> np.ndarray:
        part = getattr(theirs, name)
        kernel = np.asarray(part.kernel[...], np.float64)
        source = x[name].astype(np.float64)
        return np.swapaxes(np.tensordot(source, kernel, 1) + np.asarray(part.bias[...]), 1, 2)

    heads = [project(name) for name in ("query", "key", "value")]
    kernel = np.asarray(theirs.out.kernel[...], np.float64)
    for panel in (TORCH, JAX):
        attended = panel.attend(*heads, **options)[0]
        right = np.tensordot(np.swapaxes(attended, 1, 2), kernel, 2) + np.asarray(
            theirs.out.bias[...]
        )
        np.testing.assert_allclose(peer, right, rtol=0, atol=32 * 2.0**-24 * np.abs(right).max())
