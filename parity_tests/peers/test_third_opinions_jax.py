"""Attention beside ``jax.nn.dot_product_attention``, forward and backward.

Its softmax is in float32 whatever it is given, so that it is run in float32 against our float64, by
the working rule.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from diptych.parity.compare import compare_working
from parity_tests.peers.third_opinions import (
    LENGTHS,
    RANDOM,
    B,
    H,
    K,
    N,
    coins,
    cotangents,
    inputs_of,
    ours,
)
from parity_tests.support.harness import Arrays, Run, run_jax, run_torch, to_jax
from parity_tests.support.panels import JAX, TORCH


@pytest.mark.parametrize(
    "lengths",
    [
        pytest.param(lengths, id=name, marks=[pytest.mark.slow] * (name in ("T=1", "T=S")))
        for name, lengths in LENGTHS.items()
    ],
)
@pytest.mark.parametrize("option", ["plain", "mask", "bias", "causal", "grouped", "window"])
def test_jax_nn(option, lengths):
    T, S = lengths
    inputs = inputs_of(T, S, kv_heads=K if option == "grouped" else N, value_width=H)
    options: dict[str, Any] = {
        "plain": {"scale": 0.3},
        "mask": {"mask": coins(B, N, T, S)},
        "bias": {"bias": RANDOM.normal(size=(B, N, T, S)).astype(np.float32)},
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


def judge_in_float32(inputs: Arrays, options: dict[str, Any], peer: Callable) -> None:
    """Hold both panels to a peer of JAX: all three in float32, the truth our float64."""
    narrow = {name: array.astype(np.float32) for name, array in inputs.items()}
    wide = {name: array.astype(np.float64) for name, array in narrow.items()}
    shape = (*inputs["query"].shape[:-1], inputs["value"].shape[-1])
    theirs = run_jax(
        lambda arrays: {"output": peer(**arrays)}, narrow, cotangents(shape, narrow), x64=False
    )
    truth = ours(TORCH, wide, options, _run_wide)
    for panel, run in ((TORCH, run_torch), (JAX, _run_narrow)):
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


def _run_wide(call: Any, inputs: Arrays, given: Arrays) -> Run:
    """Run torch in float64 from the float32 cotangents of the others."""
    rounded = {name: array.astype(np.float32).astype(np.float64) for name, array in given.items()}
    return run_torch(call, inputs, rounded)


def _run_narrow(call: Any, inputs: Arrays, given: Arrays) -> Run:
    return run_jax(call, inputs, given, x64=False)
