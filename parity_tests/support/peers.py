"""Modules of ``transformers`` or torch beside ours, from the same weights, in float64.

A peer's float32 casts are lifted and it is held to the exact tier: outputs, hidden states and
attention weights, and the gradients of inputs and parameters.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from diptych.spec import Config
from parity_tests.components.case import ComponentCase
from parity_tests.components.runs import floating, run_component_jax, run_component_torch
from parity_tests.support.harness import (
    Arrays,
    Run,
    compare_runs,
    cotangents_of,
    from_torch,
    to_torch,
)
from parity_tests.support.lift_float32 import float64_throughout

Tensors = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A module written by others.

    Attributes:
        build: Returns the module.
        case: What it is to us, and our call.
        call: From the module and the arguments of the case, as tensors, to what it returns, by the
            names that ``outputs_of`` gives to ours.
        names: Parts of our parameters' names by the peer's, whole between dots, taken in order.
        split: Turns a fused parameter, by its name, into those that it holds.
    """

    build: Callable[[], torch.nn.Module]
    case: ComponentCase
    call: Callable[[Any, Tensors], Tensors]
    names: dict[str, str] = field(default_factory=dict)
    split: Callable[[str, np.ndarray], Arrays] = lambda name, array: {name: array}


def judge_peer(peer: Peer) -> None:
    """Assert that both panels compute what the peer computes."""
    module = random_module(peer.build)
    tensors = canonical(peer, dict(module.named_parameters()))
    theirs, cotangents = _run(peer, module)
    for run in (run_component_torch, run_component_jax):
        ours = run(peer.case, tensors, cotangents)
        rows = compare_runs(run.__name__, ours, theirs)
        faults = [str(row) for row in [*rows.outputs, *rows.gradients] if not row.ok]
        assert not faults, "\n".join(faults)


def random_module(build: Callable[[], torch.nn.Module]) -> torch.nn.Module:
    """Build a module in float64 and evaluation mode: no bias is 0, no norm scale is 1."""
    generator = torch.Generator().manual_seed(6)
    with float64_throughout():
        module = build().eval()
    for name, parameter in module.named_parameters():
        drawn = 0.3 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data = drawn + 1.0 if "norm" in name else drawn
        parameter.requires_grad_()
    return module


def canonical(peer: Peer, tensors: Tensors) -> Arrays:
    """Return a peer's parameters, or their gradients, by our names in our shapes."""
    config: Config = peer.case.config
    found: Arrays = {}
    for theirs, tensor in tensors.items():
        for name, part in peer.split(theirs, from_torch(tensor)).items():
            for old, new in peer.names.items():
                name = re.sub(rf"(^|\.){re.escape(old)}(?=\.|$)", rf"\g<1>{new}", name)
            found[name] = np.ascontiguousarray(part)
    leaves = config.leaves()
    assert found.keys() == leaves.keys(), sorted(found.keys() ^ leaves.keys())
    for name, leaf in leaves.items():
        leading = found[name].ndim - len(leaf.shape)  # a token of shape (1, 1, D) is (D,) to us
        assert found[name].shape == (1,) * leading + leaf.shape, name
        found[name] = found[name].reshape(leaf.shape)
    return found


def call_recording(
    module: torch.nn.Module, parts: list[str], *args: Any, **options: Any
) -> tuple[Any, list[Any]]:
    """Call a module; return its output and what each of the named parts in it returned."""
    found: dict[str, Any] = {}
    hooks = [
        module.get_submodule(part).register_forward_hook(
            lambda _module, _args, output, part=part: found.update({part: output})
        )
        for part in parts
    ]
    output = module(*args, **options)
    for hook in hooks:
        hook.remove()
    return output, [found[part] for part in parts]


def named_stack(output: Any, hidden_states: Any, weights: Any, **others: Any) -> Tensors:
    """Name what a stack of layers returned as our ``StackOutput`` names it."""
    named = {"[output]": output}
    for name, parts in (("hidden_states", hidden_states), ("attention_weights", weights)):
        named |= {f"[{name}][{i}]": part for i, part in enumerate(parts)}
    return named | {f"[{name}]": part for name, part in others.items()}


def thirds(name: str, array: np.ndarray) -> Arrays:
    """Split the fused projection of ``torch.nn.MultiheadAttention``."""
    prefix, fused, kind = name.rpartition("in_proj_")
    if not fused:
        return {name: array}
    parts = zip("qkv", np.split(array, 3), strict=True)
    return {f"{prefix}{letter}_proj.{kind}": part for letter, part in parts}


def _run(peer: Peer, module: torch.nn.Module) -> tuple[Run, Arrays]:
    """Run a peer forward and backward; return its cotangents too."""
    inputs = {name: to_torch(array) for name, array in peer.case.arguments.items()}
    given = {name: inputs[name].requires_grad_() for name in floating(peer.case.arguments)}
    parameters = dict(module.named_parameters())
    with float64_throughout():
        outputs = peer.call(module, inputs)
    assert {tensor.dtype for tensor in outputs.values()} == {torch.float64}
    found = {name: from_torch(tensor) for name, tensor in outputs.items()}
    cotangents = cotangents_of(found)
    loss = sum((outputs[name] * to_torch(array)).sum() for name, array in cotangents.items())
    slopes = torch.autograd.grad(loss, [*given.values(), *parameters.values()])
    named = dict(zip([*given, *parameters], slopes, strict=True))
    of_inputs = {name: from_torch(named.pop(name)) for name in given}
    return Run(found, of_inputs | canonical(peer, named)), cotangents
