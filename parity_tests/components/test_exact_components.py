"""The exact tier of every component: same weights in both panels, forward and backward, float64."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

import jax_impl
import torch_impl
from parity_tests.components.case import ComponentCase, random_tensors
from parity_tests.components.rooms import CASES, ROOMS, component, slow_if
from parity_tests.components.runs import (
    jax_module,
    outputs_of,
    run_component_jax,
    run_component_torch,
    to_canonical,
    torch_module,
)
from parity_tests.support.harness import Arrays, Run, cotangents_of, judge_exact


def cases(
    is_slow: Callable[[ComponentCase], bool], names: Iterable[str] = tuple(CASES)
) -> list[Any]:
    """Return cases as parameters."""
    return [pytest.param(name, marks=slow_if(is_slow(CASES[name]))) for name in names]


def one_a_component() -> list[str]:
    """Return one case of every component that has any: the first that is not slow, or the first."""
    names = [sorted(room.calls, key=lambda name: CASES[name].is_slow) for room in ROOMS.values()]
    return [of_component[0] for of_component in names if of_component]


def judge(
    tally,
    name: str,
    case: ComponentCase,
    *,
    torch_compiled: bool = False,
    jax_compiled: bool = True,
) -> None:
    """Judge outputs and gradients of both panels, by each other, and outputs by the formula.

    Args:
        tally: Takes every comparison.
        name: Of the case.
        case: One call.
        torch_compiled: Whether torch compiles the call; eager torch is what its users run.
        jax_compiled: Whether JAX compiles it.
    """
    truth, cotangents = truth_of(case)
    tensors = random_tensors(case.config)
    in_torch = run_component_torch(case, tensors, cotangents, compiled=torch_compiled)
    in_jax = run_component_jax(case, tensors, cotangents, jit=jax_compiled)
    judge_exact(tally, name, in_torch, in_jax)
    for run in (in_torch, in_jax):
        judge_by_formula(tally, name, run, truth)


def truth_of(case: ComponentCase) -> tuple[Arrays, Arrays]:
    """Return what the formula gives for a case, and cotangents of that."""
    tensors = random_tensors(case.config)
    truth = outputs_of(component(case.config, tensors, *case.positional, **case.named))
    return truth, cotangents_of(truth)


def judge_by_formula(tally, name: str, run: Run, truth: Arrays) -> None:
    """Judge the outputs of one panel."""
    judge_exact(tally, f"{name}, oracle", Run(run.outputs, {}), Run(truth, {}), float32_bits=False)


@pytest.mark.parametrize("name", cases(lambda case: case.is_slow))
def test_component(tally, name):
    judge(tally, name, CASES[name])


@pytest.mark.parametrize("name", cases(lambda case: ROOMS[case.config.component].is_slow))
def test_component_without_jit(tally, name):
    judge(tally, name, CASES[name], jax_compiled=False)


@pytest.mark.parametrize("name", CASES)
def test_component_in_torch(tally, name):
    """What costs nothing, of every case, those of the long tail too."""
    truth, _ = truth_of(CASES[name])
    run = run_component_torch(CASES[name], random_tensors(CASES[name].config), {})
    judge_by_formula(tally, name, run, truth)


@pytest.mark.parametrize("name", cases(lambda case: case.is_slow, one_a_component()))
def test_component_compiled_by_torch(tally, name):
    """One case of each component: what compiling adds is not in a component's options."""
    case = CASES[name]
    _, cotangents = truth_of(case)
    tensors = random_tensors(case.config)
    eager = run_component_torch(case, tensors, cotangents)
    compiled = run_component_torch(case, tensors, cotangents, compiled=True)
    judge_exact(tally, f"{name}, compiled", compiled, eager)


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
        assert back[leaf].dtype == array.dtype
        assert back[leaf].shape == array.shape
        assert back[leaf].tobytes() == array.tobytes(), leaf
