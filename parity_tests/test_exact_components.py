"""The exact tier of every component: same weights in both panels, forward and backward, float64."""

import jax
import pytest
from flax import nnx

import jax_impl
import torch_impl
from diptych.parity.compare import compare_bits
from parity_tests import oracle_components
from parity_tests.component_cases import (
    CASES,
    ComponentCase,
    component_call,
    floating,
    outputs_of,
    random_tensors,
    to_canonical,
    to_flax,
)
from parity_tests.harness import (
    Arrays,
    Run,
    cotangents_of,
    judge_exact,
    run_jax,
    run_torch,
    to_jax,
    to_torch,
)


def torch_module(case: ComponentCase, tensors: Arrays):
    module = getattr(torch_impl, case.config.component).from_config(case.config).eval()
    torch_impl.load_state(module, tensors)
    return module


def jax_module(case: ComponentCase, tensors: Arrays):
    rngs = {"rngs": nnx.Rngs(0)} if case.config.leaves() else {}
    module = getattr(jax_impl, case.config.component).from_config(case.config, **rngs).eval()
    with jax.enable_x64(True):
        jax_impl.load_state(module, tensors)
    return module


def judge(tally, name: str, *, jit: bool = True) -> None:
    case = CASES[name]
    config = case.config
    tensors = random_tensors(config)
    truth = outputs_of(
        oracle_components.component(config, tensors, *case.arguments.values(), **case.options)
    )
    cotangents = cotangents_of(truth)

    inputs = floating(case.arguments) | tensors
    call = component_call(torch_impl.functional_call, torch_module(case, tensors), to_torch, case)
    in_torch = run_torch(call, inputs, cotangents)

    flax_tensors = to_flax(config, tensors)
    inputs = floating(case.arguments) | flax_tensors
    call = component_call(jax_impl.functional_call, jax_module(case, flax_tensors), to_jax, case)
    run = run_jax(call, inputs, cotangents, jit=jit)
    own = {name: run.gradients.pop(name) for name in flax_tensors}
    in_jax = Run(run.outputs, run.gradients | to_canonical(config, own))

    judge_exact(tally, name, in_torch, in_jax)
    for run in (in_torch, in_jax):
        judge_exact(
            tally, f"{name}, oracle", Run(run.outputs, {}), Run(truth, {}), float32_bits=False
        )


@pytest.mark.parametrize("name", CASES)
def test_component(tally, name):
    judge(tally, name)


@pytest.mark.parametrize("name", CASES)
def test_component_without_jit(tally, name):
    judge(tally, name, jit=False)


@pytest.mark.parametrize("name", CASES)
def test_weights_cross_in_both_directions(name):
    case = CASES[name]
    tensors = random_tensors(case.config)
    there = jax_impl.export_state(
        jax_module(case, to_flax(case.config, torch_impl.export_state(torch_module(case, tensors))))
    )
    back = torch_impl.export_state(torch_module(case, to_canonical(case.config, there)))
    assert back.keys() == tensors.keys()
    for leaf, array in tensors.items():
        assert compare_bits(back[leaf], array, name=leaf).ok
