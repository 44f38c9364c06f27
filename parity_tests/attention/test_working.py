"""The working tier: float32, bfloat16 and float16, judged by plain code in the same dtype.

The reference is the float64 oracle on the same inputs after their rounding. Exactness is proved by
the exact tier; this one proves the handling of dtypes.
"""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import jax_impl
import torch_impl
from parity_tests.attention import oracle
from parity_tests.attention.cases import AttentionCase, attention_call, attention_case
from parity_tests.attention.guard import guard
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.rooms import CASES, component
from parity_tests.components.runs import run_component_jax, run_component_torch
from parity_tests.support import plain
from parity_tests.support.gain import compare_gain
from parity_tests.support.harness import (
    DTYPES,
    Arrays,
    Call,
    Run,
    cotangents_of,
    judge_working,
    random_arrays,
    run_jax,
    run_torch,
    to_jax,
    to_torch,
)

WORKING = ("float32", "bfloat16", "float16")
PANELS: dict[str, tuple[Any, ModuleType, Callable, Callable]] = {
    "torch": (torch_impl, torch, run_torch, to_torch),
    "jax": (jax_impl, jnp, lambda *arguments: run_jax(*arguments, x64=False), to_jax),
}
ATTENTION = (
    "plain",
    "key mask",
    "bias",
    "softcap",
    "grouped",
    *(
        pytest.param(variant, marks=pytest.mark.slow)
        for variant in ("mask", "causal offset", "no heads")
    ),
)


def rounded(arrays: Arrays, dtype: str) -> tuple[Arrays, Arrays]:
    """Return the arrays in a working dtype, and in float64 after that rounding."""
    narrow = {name: array.astype(DTYPES[dtype]) for name, array in arrays.items()}
    return narrow, {name: array.astype(np.float64) for name, array in narrow.items()}


def plain_attention(xp: ModuleType, case: AttentionCase, visible: np.ndarray, to_panel) -> Call:
    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        options = {k: case.options[k] for k in ("scale", "softcap") if k in case.options}
        output, weights = plain.attention(xp, **inputs, visible=to_panel(visible), **options)
        return {"output": output, "weights": weights}

    return call


@pytest.mark.parametrize("dtype", WORKING)
@pytest.mark.parametrize("variant", ATTENTION)
@pytest.mark.parametrize("panel", PANELS)
def test_attention(panel, variant, dtype):
    impl, xp, run, to_panel = PANELS[panel]
    case = attention_case(variant, 11, 13)
    inputs, wide = rounded(case.inputs, dtype)
    result = oracle.attention(**wide, **case.options)
    assert result.visible.any(-1).all()
    truth = {"output": result.output, "weights": result.weights}
    cotangents, wide_cotangents = rounded(cotangents_of(truth), dtype)
    gradients = result.backward(wide_cotangents["output"], wide_cotangents["weights"])

    attend = impl.functional.scaled_dot_product_attention
    found = run(attention_call(attend, to_panel, case.options), inputs, cotangents)
    yardstick = run(plain_attention(xp, case, result.visible, to_panel), inputs, cotangents)
    judge_working(variant, found, Run(truth, gradients), yardstick)
    error = np.abs(found.outputs["output"].astype(np.float64) - result.output).max()
    assert error <= guard(wide, case.options, DTYPES[dtype])


@pytest.mark.parametrize("dtype", WORKING)
@pytest.mark.parametrize("panel", PANELS)
def test_large_scores_are_kept_in_float32(panel, dtype):
    """Scores of 114 and a little: rounded to 16 bits, the little is lost."""
    impl, _, run, to_panel = PANELS[panel]
    case = attention_case("plain", 11, 13)
    for name in ("query", "key"):
        case.inputs[name][..., 0] = 16.0
    inputs, wide = rounded(case.inputs, dtype)
    call = attention_call(impl.functional.scaled_dot_product_attention, to_panel, {})
    output = run(call, inputs, {}).outputs["output"]
    error = np.abs(output.astype(np.float64) - oracle.attention(**wide).output).max()
    assert error <= guard(wide, {}, DTYPES[dtype])


def plain_component(xp: ModuleType, config: Any, case: Any, to_panel: Callable) -> Call:
    """Return plain code for one of the components below, from canonical parameters."""

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        x = inputs.get("x")
        match config.component:
            case "LayerNorm":
                output = plain.layer_norm(xp, x, inputs["weight"], inputs["bias"], config.eps)
            case "FeedForward":
                hidden = plain.linear(x, inputs, "up_proj")
                hidden = plain.activation(xp, hidden, config.activation)
                output = plain.linear(hidden, inputs, "down_proj")
            case "TransformerEncoderLayer":
                visible = to_panel(case.options["key_mask"][:, None, None, :])
                output, weights = plain.encoder_layer(xp, inputs, "", x, config, visible)
                return {"[0]": output, "[1]": weights}
            case "Encoder":
                mask = case.options["mask"]
                output = plain.encoder(xp, inputs, x, config, to_panel(mask))["output"]
                return {"[output]": output}
        return {"output": output}

    return call


COMPONENTS = (
    "LayerNorm",
    "FeedForward, relu",
    "FeedForward, gelu",
    "FeedForward, tanh",
    "TransformerEncoderLayer, gelu",
    pytest.param("Encoder of vectors", marks=pytest.mark.slow),
)


@pytest.mark.parametrize("dtype", WORKING)
@pytest.mark.parametrize("name", COMPONENTS)
@pytest.mark.parametrize("panel", PANELS)
def test_component(panel, name, dtype):
    _, xp, run, to_panel = PANELS[panel]
    case = CASES[name]
    config = case.config
    tensors, wide_tensors = rounded(random_tensors(config), dtype)
    arguments, wide_arguments = rounded(case.arguments, dtype)
    wide_case = dataclasses.replace(case, arguments=wide_arguments)
    case = dataclasses.replace(case, arguments=arguments)
    outputs = run_component_torch(wide_case, wide_tensors, {}).outputs
    cotangents, wide_cotangents = rounded(cotangents_of(outputs), dtype)
    truth = run_component_torch(wide_case, wide_tensors, wide_cotangents)
    plain_call = plain_component(xp, config, case, to_panel)
    yardstick = run(plain_call, arguments | tensors, cotangents)
    judge_working(name, run_component(panel, case, tensors, cotangents), truth, yardstick)


def run_component(panel: str, case: ComponentCase, tensors: Arrays, cotangents: Arrays) -> Run:
    if panel == "torch":
        return run_component_torch(case, tensors, cotangents)
    return run_component_jax(case, tensors, cotangents, x64=False)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("panel", PANELS)
def test_attention_has_no_gain(panel, dtype):
    impl, _, run, to_panel = PANELS[panel]
    shapes = {"query": (64, 3, 11, 5), "key": (64, 3, 13, 5), "value": (64, 3, 13, 7)}
    inputs, wide = rounded(random_arrays(0, shapes), dtype)
    result = oracle.attention(**wide)
    call = attention_call(impl.functional.scaled_dot_product_attention, to_panel, {})
    outputs = run(call, inputs, {}).outputs
    for name, truth in {"output": result.output, "weights": result.weights}.items():
        row = compare_gain(list(outputs[name]), list(truth), name=name)
        assert row.ok, str(row)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("panel", PANELS)
def test_a_layer_has_no_gain(panel, dtype):
    config = CASES["TransformerEncoderLayer"].config
    tensors, wide_tensors = rounded(random_tensors(config), dtype)
    x, wide = rounded(random_arrays(0, {"x": (64, 11, config.d_model)}), dtype)
    truth = component(config, wide_tensors, wide["x"])
    run = run_component(panel, ComponentCase(config, x), tensors, {})
    row = compare_gain(list(run.outputs["output"]), list(truth))
    assert row.ok, str(row)
