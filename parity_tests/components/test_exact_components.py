"""The exact tier of every component: same weights in both panels, forward and backward, float64."""

import pytest

import jax_impl
import torch_impl
from diptych.parity.compare import compare_bits
from parity_tests.components import oracle_components
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.cases import CASES
from parity_tests.components.runs import (
    jax_module,
    outputs_of,
    run_component_jax,
    run_component_torch,
    to_canonical,
    torch_module,
)
from parity_tests.support.harness import Run, cotangents_of, judge_exact


def judge(
    tally,
    name: str,
    case: ComponentCase,
    *,
    torch_compiled: bool = False,
    jax_compiled: bool = True,
) -> None:
    """Judge outputs and gradients of both panels, by each other, and outputs by the oracle."""
    tensors = random_tensors(case.config)
    truth = outputs_of(
        oracle_components.component(case.config, tensors, *case.positional, **case.named)
    )
    cotangents = cotangents_of(truth)
    in_torch = run_component_torch(case, tensors, cotangents, compiled=torch_compiled)
    in_jax = run_component_jax(case, tensors, cotangents, jit=jax_compiled)
    judge_exact(tally, name, in_torch, in_jax)
    for run in (in_torch, in_jax):
        judge_exact(
            tally, f"{name}, oracle", Run(run.outputs, {}), Run(truth, {}), float32_bits=False
        )


@pytest.mark.parametrize("name", CASES)
def test_component(tally, name):
    judge(tally, name, CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_component_without_jit(tally, name):
    judge(tally, name, CASES[name], jax_compiled=False)


@pytest.mark.parametrize("name", CASES)
def test_weights_cross_in_both_directions(name):
    config = CASES[name].config
    tensors = random_tensors(config)
    there = jax_impl.export_state(
        jax_module(config, torch_impl.export_state(torch_module(config, tensors)))
    )
    back = torch_impl.export_state(torch_module(config, to_canonical(config, there)))
    assert back.keys() == tensors.keys()
    for leaf, array in tensors.items():
        assert compare_bits(back[leaf], array, name=leaf).ok
