"""The working tier of every variant: one row each, in float32, bfloat16 and float16.

The truth is the float64 panel, which the exact tier proves, on the same arguments after their
rounding; the yardstick is plain code, see ``narrow``; every attention also stays under its guard.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import jax_impl
import torch_impl
from diptych.parity.rounding import FLOAT32, rounding_noise
from parity_tests.attention.guard import AttentionRecord
from parity_tests.attention.test_working import WORKING, rounded
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.rooms import CASES, slow_if
from parity_tests.components.runs import floating, run_component_jax, run_component_torch
from parity_tests.models.cases import MODEL_CASES, VARIANTS
from parity_tests.support.harness import (
    DTYPES,
    Arrays,
    Run,
    cotangents_of,
    judge_working,
    to_torch,
)
from parity_tests.support.narrow import Narrow

PANELS: dict[str, tuple[Any, Callable[..., Run]]] = {
    "torch": (torch_impl, run_component_torch),
    "jax": (jax_impl, run_component_jax),
}
ROWS = {**VARIANTS, **{name: name for name, case in CASES.items() if case.is_working}}


def narrow_case(case: ComponentCase, dtype: str) -> tuple[ComponentCase, ComponentCase]:
    """Return the case in a working dtype, and in float64 after that rounding."""
    arguments, wide_arguments = rounded(floating(case.arguments), dtype)
    given = {name: x for name, x in case.options.items() if isinstance(x, np.ndarray)}
    options, wide_options = rounded(floating(given), dtype)
    return (
        replace(case, arguments=case.arguments | arguments, options=case.options | options),
        replace(
            case, arguments=case.arguments | wide_arguments, options=case.options | wide_options
        ),
    )


def plain_run(case: ComponentCase, tensors: Arrays, cotangents: Arrays, dtype: str) -> Run:
    """Run a float64 case as plain code in a working dtype."""
    with Narrow(getattr(torch, dtype)) as mode:
        run = run_component_torch(case, tensors, cotangents, wrap=mode.following)
    return Run(*(rounded(arrays, dtype)[0] for arrays in (run.outputs, run.gradients)))


SLOW_IN_JAX = {
    "ALiBi, heads no power of two",
    "EncoderDecoder",
    "RMSNorm",
    "T5 bias, one way",
    "VisionEncoder, attention",
    "biases of q, k and v apart",
    "block-local",
    "branch norm",
    "causal",
    "causal, T < S",
    "causal, offset per sample",
    "grouped heads",
    "latent, scaled rotary",
    "layer scale",
    "mixture, gated shared",
    "mixture, sigmoid, shared",
    "mixture, softmax of the top",
    "multi-query",
    "padding",
    "parallel, one LayerNorm without bias",
    "post-norm",
    "pre-norm",
    "prefix-LM",
    "q/k layer norm",
    "q/k norm and memory",
    "rotary, dynamic",
    "rotary, linear",
    "rotary, llama3",
    "rotary, partial",
    "rotary, yarn",
    "scale",
    "segments",
    "sinks",
    "width of keys and values",
    "width of one head",
    "window",
    "window, softcap, scale, grouped",
}
"""Rows in which JAX rounds where it rounds in another row; torch, where a row costs nothing, runs
them all."""

# A compilation a row: JAX in the dtypes other than bfloat16 is the long tail.
CALLS = [
    pytest.param(
        panel,
        dtype,
        marks=[pytest.mark.slow] if panel == "jax" and dtype != "bfloat16" else [],
        id=f"{dtype}-{panel}",
    )
    for dtype in WORKING
    for panel in PANELS
]


def marked(variant: str, call: Any) -> Any:
    """Return a row in one panel and dtype, with its marks."""
    panel, dtype = call.values
    marks = [*call.marks, *slow_if(panel == "jax" and variant in SLOW_IN_JAX)]
    return pytest.param(variant, panel, dtype, marks=marks, id=f"{variant}-{call.id}")


def test_the_rows_that_are_slow_are_rows():
    assert ROWS.keys() > SLOW_IN_JAX


@pytest.mark.parametrize(
    ("variant", "panel", "dtype"), [marked(variant, call) for variant in ROWS for call in CALLS]
)
def test_variant(variant, panel, dtype):
    name = ROWS[variant]
    case, wide_case = narrow_case({**MODEL_CASES, **CASES}[name], dtype)
    tensors, wide_tensors = rounded(random_tensors(case.config), dtype)
    outputs = run_component_torch(wide_case, wide_tensors, {}).outputs
    cotangents, wide_cotangents = rounded(cotangents_of(outputs), dtype)
    truth = run_component_torch(wide_case, wide_tensors, wide_cotangents)
    yardstick = plain_run(wide_case, wide_tensors, wide_cotangents, dtype)

    package, run_component = PANELS[panel]
    record = AttentionRecord(package)
    options = {"x64": False} if panel == "jax" else {}
    found = run_component(case, tensors, cotangents, wrap=record.wrap, **options)
    faults = record.faults(found.outputs)
    assert not faults, "\n".join(faults)

    def noise() -> dict[str, float]:
        def run() -> dict[str, torch.Tensor]:
            moved = run_component_torch(wide_case, wide_tensors, wide_cotangents)
            gradients = np.concatenate([moved.gradients[k].reshape(-1) for k in truth.gradients])
            return to_torch(moved.outputs | {"gradients": gradients})

        return rounding_noise(run, unit=FLOAT32)

    judge_working(name, found, truth, yardstick, *([noise] if dtype == "float32" else []))
    assert {x.dtype for x in [*found.outputs.values(), *found.gradients.values()]} == {
        DTYPES[dtype]
    }
