"""Running one call of a component in either panel, from canonical parameters."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import torch
from flax import nnx

import jax_impl
import torch_impl
from diptych.convert import layout_rules
from diptych.parity.rounding import FLOAT32, rounding_noise
from diptych.rules import convert_tensors, inverse
from diptych.spec import Config
from parity_tests.components.case import ComponentCase
from parity_tests.support.harness import Arrays, Call, Run, run_jax, run_torch, to_jax, to_torch
from parity_tests.support.trace import named_arrays


def torch_module(config: Config, tensors: Arrays) -> Any:
    """Return torch_impl's module with canonical parameters, in evaluation mode."""
    module = getattr(torch_impl, config.component).from_config(config).eval()
    torch_impl.load_state(module, tensors)
    return module


def jax_module(config: Config, tensors: Arrays) -> Any:
    """Return jax_impl's module with canonical parameters, in evaluation mode."""
    rngs = {"rngs": nnx.Rngs(0)} if config.leaves() else {}
    module = getattr(jax_impl, config.component).from_config(config, **rngs).eval()
    with jax.enable_x64(True):
        jax_impl.load_state(module, to_flax(config, tensors))
    return module


def run_component_torch(
    case: ComponentCase,
    tensors: Arrays,
    cotangents: Arrays,
    *,
    compiled: bool = False,
    wrap: Callable[[Call], Call] = lambda call: call,
) -> Run:
    """Run a component of torch_impl; gradients are those of floating arguments and parameters."""
    module = torch_module(case.config, tensors)

    def apply(params: dict[str, Any], arguments: list, options: dict[str, Any]) -> Any:
        return torch_impl.functional_call(module, params, *arguments, **options)

    if compiled:
        torch.compiler.reset()
        apply = torch.compile(apply, backend="aot_eager", fullgraph=True)

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        return outputs_of(apply(*_split(case, inputs, to_torch)))

    return run_torch(wrap(call), floating(case.arguments) | tensors, cotangents)


def run_component_jax(
    case: ComponentCase,
    tensors: Arrays,
    cotangents: Arrays,
    *,
    jit: bool = True,
    x64: bool = True,
    wrap: Callable[[Call], Call] = lambda call: call,
) -> Run:
    """Run a component of jax_impl; parameters and their gradients have canonical names here."""
    module = jax_module(case.config, tensors)

    def call(inputs: dict[str, Any]) -> dict[str, Any]:
        params, arguments, options = _split(case, inputs, to_jax)
        return outputs_of(jax_impl.functional_call(module, params, *arguments, **options))

    own = to_flax(case.config, tensors)
    run = run_jax(wrap(call), floating(case.arguments) | own, cotangents, jit=jit, x64=x64)
    if not cotangents:
        return run
    gradients = to_canonical(case.config, {name: run.gradients.pop(name) for name in own})
    return Run(run.outputs, run.gradients | gradients)


def torch_float32_noise(case: ComponentCase, tensors: Arrays) -> dict[str, float]:
    """Return how far random float32 rounding errors move every output of the torch panel."""
    wide = {name: array.astype(np.float64) for name, array in tensors.items()}
    arguments = {
        name: array.astype(np.float64) if array.dtype.kind == "f" else array
        for name, array in case.arguments.items()
    }
    wide_case = replace(case, arguments=arguments)
    return rounding_noise(
        lambda: to_torch(run_component_torch(wide_case, wide, {}).outputs), unit=FLOAT32
    )


def to_flax(config: Config, tensors: Arrays) -> Arrays:
    """Return canonical tensors in the names and shapes of jax_impl."""
    return convert_tensors(tensors, layout_rules(config))


def to_canonical(config: Config, tensors: Arrays) -> Arrays:
    """Return tensors of jax_impl by canonical name, in the shapes of torch_impl."""
    return convert_tensors(tensors, inverse(layout_rules(config)))


def floating(arguments: dict[str, np.ndarray]) -> Arrays:
    """Return the arguments that are differentiated."""
    return {name: array for name, array in arguments.items() if array.dtype.kind not in "biu"}


def outputs_of(output: Any) -> dict[str, Any]:
    """Return every array of a module's output by name; a lone array is "output"."""
    return {suffix or "output": array for suffix, array in named_arrays(output)}


def _split(case: ComponentCase, inputs: dict[str, Any], to_panel: Any) -> tuple[dict, list, dict]:
    """Separate parameters, positional arguments (ids included) and keyword arguments of a call."""
    params = {name: array for name, array in inputs.items() if name not in case.arguments}
    arguments = {
        name: inputs[name] if name in inputs else to_panel(array)
        for name, array in case.arguments.items()
    }
    options = {name: arguments.pop(name) for name in case.keywords if name in arguments}
    return params, list(arguments.values()), to_panel(case.options) | options
